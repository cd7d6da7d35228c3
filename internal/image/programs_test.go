package image

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"runtime"
	"testing"

	. "github.com/onsi/gomega"
)

// elfFile is a program without code for a processor, with an interpreter unless that is empty, and the libraries that it is linked with.
func elfFile(t *testing.T, machine elf.Machine, interpreter string, libraries ...string) []byte {
	t.Helper()
	names := []byte{0}
	var dynamic []elf.Dyn64
	for _, l := range libraries {
		dynamic = append(dynamic, elf.Dyn64{Tag: int64(elf.DT_NEEDED), Val: uint64(len(names))})
		names = append(append(names, l...), 0)
	}
	dynamic = append(dynamic, elf.Dyn64{Tag: int64(elf.DT_NULL)})
	const head, prog, section = 64, 56, 64
	interpreterAt := uint64(head + prog + 3*section)
	namesAt := interpreterAt + uint64(len(interpreter)) + 1
	dynamicAt := namesAt + uint64(len(names))
	h := elf.Header64{
		Type: uint16(elf.ET_EXEC), Machine: uint16(machine), Version: uint32(elf.EV_CURRENT), Ehsize: head,
		Phoff: head, Phentsize: prog, Phnum: 1, Shoff: head + prog, Shentsize: section, Shnum: 3, Shstrndx: 1,
	}
	copy(h.Ident[:], elf.ELFMAG)
	h.Ident[elf.EI_CLASS], h.Ident[elf.EI_DATA], h.Ident[elf.EI_VERSION] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)
	p := elf.Prog64{Type: uint32(elf.PT_NOTE)}
	if interpreter != "" {
		p = elf.Prog64{Type: uint32(elf.PT_INTERP), Off: interpreterAt, Filesz: uint64(len(interpreter)) + 1}
	}
	var out bytes.Buffer
	for _, part := range []any{
		h, p, elf.Section64{},
		elf.Section64{Type: uint32(elf.SHT_STRTAB), Off: namesAt, Size: uint64(len(names))},
		elf.Section64{Type: uint32(elf.SHT_DYNAMIC), Off: dynamicAt, Size: uint64(len(dynamic)) * 16, Link: 1, Entsize: 16},
		append([]byte(interpreter), 0), names, dynamic,
	} {
		if err := binary.Write(&out, binary.LittleEndian, part); err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}

func TestCheckPrograms(t *testing.T) {
	const loader = "/lib/ld-linux-aarch64.so.1"
	arm := func(name string, libraries ...string) File {
		return File{Path: name, Mode: 0o755, Data: elfFile(t, elf.EM_AARCH64, loader, libraries...)}
	}
	// As in Debian: the interpreter is behind two links, and libraries have names without their last numbers.
	system := []File{
		{Path: "/lib", Link: "usr/lib"}, {Path: "/usr/lib/ld-linux-aarch64.so.1", Link: "aarch64-linux-gnu/ld-linux-aarch64.so.1"},
		{Path: "/usr/lib/aarch64-linux-gnu/ld-linux-aarch64.so.1", Data: elfFile(t, elf.EM_AARCH64, "")},
		{Path: "/usr/lib/aarch64-linux-gnu/libc.so.6", Data: elfFile(t, elf.EM_AARCH64, "")},
		{Path: "/usr/lib/aarch64-linux-gnu/libmnl.so.0", Link: "libmnl.so.0.2.0"}, {Path: "/usr/lib/aarch64-linux-gnu/libmnl.so.0.2.0", Data: elfFile(t, elf.EM_AARCH64, "", "libc.so.6")},
		{Path: "/usr/lib/aarch64-linux-gnu/libgone.so.1", Link: "libgone.so.1.0.0"}, {Path: "/usr/lib/libround.so.1", Link: "libround.so.1"},
		{Path: "/usr/bin/script", Data: []byte("#!/bin/sh\n")}, {Path: "/etc/empty"},
	}
	for name, c := range map[string]struct {
		files []File
		want  []string // of the error
	}{
		"When everything is there it should be content":                         {[]File{arm("/usr/sbin/nft", "libmnl.so.0", "libc.so.6")}, nil},
		"When a program needs nothing it should be content":                     {[]File{{Path: "/pause", Data: elfFile(t, elf.EM_AARCH64, "")}}, nil},
		"When a program is for another processor it should say for which":       {[]File{{Path: "/pause", Data: elfFile(t, elf.EM_X86_64, "")}}, []string{"/pause", "EM_X86_64", "EM_AARCH64"}},
		"When a library is missing it should name it and who needs it":          {[]File{arm("/usr/sbin/nft", "libnftables.so.1")}, []string{"/usr/sbin/nft needs libnftables.so.1"}},
		"When a library is a link that leads nowhere it should be missing":      {[]File{arm("/usr/sbin/nft", "libgone.so.1")}, []string{"/usr/sbin/nft needs libgone.so.1"}},
		"When a library is a link to itself it should be missing":               {[]File{arm("/usr/sbin/nft", "libround.so.1")}, []string{"/usr/sbin/nft needs libround.so.1"}},
		"When a file is no library it should stand for none":                    {[]File{arm("/usr/sbin/nft", "libx.so.1"), {Path: "/usr/share/libx.so.1"}}, []string{"needs libx.so.1"}},
		"When the interpreter is another architecture's it should be missing":   {[]File{{Path: "/bash", Data: elfFile(t, elf.EM_AARCH64, "/lib64/ld-linux-x86-64.so.2")}}, []string{"/bash needs /lib64/ld-linux-x86-64.so.2"}},
		"When a program is cut off it should be refused":                        {[]File{{Path: "/pause", Data: elfFile(t, elf.EM_AARCH64, "")[:40]}}, []string{"/pause"}},
		"When the layer above brings another program that one should be judged": {[]File{{Path: "/usr/lib/aarch64-linux-gnu/libmnl.so.0.2.0", Data: elfFile(t, elf.EM_AARCH64, "")}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			img, err := assemble(Config{}, system, c.files)
			g.Expect(err).NotTo(HaveOccurred())
			img, err = ForArchitecture(img, "arm64")
			g.Expect(err).NotTo(HaveOccurred())
			err = CheckPrograms(img)
			if len(c.want) == 0 {
				g.Expect(err).NotTo(HaveOccurred())
			}
			for _, want := range c.want {
				g.Expect(err).To(MatchError(ContainSubstring(want)))
			}
		})
	}
	t.Run("When the architecture is one that nothing is made for it should say which there are", func(t *testing.T) {
		g := NewWithT(t)
		img, err := assemble(Config{}, system)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(img.ConfigFile()).To(HaveField("Architecture", runtime.GOARCH))
		img, err = ForArchitecture(img, "mips")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(CheckPrograms(img)).To(MatchError(And(ContainSubstring(`"mips"`), ContainSubstring("amd64, arm64"))))
	})
}
