package bundle

import (
	"testing"

	. "github.com/onsi/gomega"
)

// made is a backup in a folder whose snapshot has a name. sealing and signing are the keys that the file and the manifest are made with; nil: none.
func made(t *testing.T, snapshot string, sealing, signing Key) folder {
	t.Helper()
	raw := snapshotWith('m')
	if sealing != nil {
		raw = sealed(t, sealing, raw)
	}
	m := manifest()
	m.Snapshot = fileOf(snapshot, raw)
	encoded, err := m.Encode(signing)
	if err != nil {
		t.Fatal(err)
	}
	return folder{"p/1.json": encoded, "p/" + snapshot: raw}
}

// TestUnsealed: who may write to a storage, and has no key, must not be able to make a backup.
func TestUnsealed(t *testing.T) {
	for name, tc := range map[string]struct {
		files folder
		url   string
		key   Key
		want  string // empty: it is read
	}{
		"When a key is given and somebody replaced the backup by an unsealed one it should be refused":    {made(t, "1.db.enc", nil, nil), "p/1.db.enc", key(1), "the manifest is not authenticated"},
		"When a key is given and the manifest names an unsealed file it should be refused":                {made(t, "1.db", nil, nil), "p/1.db.enc", key(1), "the manifest is not authenticated"},
		"When a key is given and the manifest itself is named it should be refused without a key's proof": {made(t, "1.db", nil, nil), "p/1.json", key(1), "the manifest is not authenticated"},
		"When the manifest is authenticated and the snapshot is not sealed it should be refused":          {made(t, "1.db.enc", nil, key(1)), "p/1.db.enc", key(1), "1.db.enc: the file is not sealed, although a key was given"},
		"When a key is given and the backup is sealed with it it should be read":                          {made(t, "1.db.enc", key(1), key(1)), "p/1.db.enc", key(1), ""},
		"When a sealed backup is named without .enc it should be read with the key":                       {made(t, "1.db.enc", key(1), key(1)), "p/1.db", key(1), ""},
		"When a backup without a key is named by .db it should be read though a key is given":             {made(t, "1.db", nil, nil), "p/1.db", key(1), ""},
		"When a backup without a key is read without one it should be read":                               {made(t, "1.db", nil, nil), "p/1.db", nil, ""},
		"When a backup without a key is named by .db and changed it should be refused all the same":       {changed(made(t, "1.db", nil, nil), "p/1.db"), "p/1.db", key(1), "1.db is damaged"},
		"When the seal of a file was overwritten it should be called damaged":                             {changed(made(t, "1.db.enc", key(1), key(1)), "p/1.db.enc"), "p/1.db.enc", key(1), "1.db.enc is damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := Verify(t.Context(), tc.files, tc.url, tc.key)
			if tc.want == "" {
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
				return
			}
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tc.want)))
		})
	}
}

// changed has another first byte in a file, which the mark of a seal has, too.
func changed(f folder, name string) folder {
	f[name][0] ^= 1
	return f
}
