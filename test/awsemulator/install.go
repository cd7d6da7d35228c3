// Package awsemulator runs an emulated AWS for tests: moto's server, from Debian's packages, behind a proxy that records calls, fails
// those that a test asks for, and answers what moto can't.
package awsemulator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// python is the machine's own: compiled modules come from its packages.
const python = "/usr/bin/python3"

// installTime bounds the installation: 13 MB to download.
const installTime = 5 * time.Minute

// suite is the release of Debian that has moto. All packages of it that are taken are for any machine.
const suite = "trixie"

var pure = strings.Fields(`python3-moto python3-boto3 python3-botocore python3-s3transfer python3-responses python3-antlr4
	python3-flask-cors python3-joserfc python3-flask python3-werkzeug python3-jinja2 python3-itsdangerous python3-click python3-blinker
	python3-xmltodict python3-jmespath python3-dateutil python3-requests python3-urllib3 python3-idna python3-certifi python3-chardet python3-six`)

// compiled are modules with machine code, by package: they are taken from the machine's own release.
var compiled = map[string]string{"cryptography": "python3-cryptography", "yaml": "python3-yaml", "markupsafe": "python3-markupsafe", "cffi": "python3-cffi-backend"}

// install unpacks moto below the user's cache and gives the folder of its modules. Nothing is installed on the machine, and a second
// call finds it there. Where packages come from is what the machine's apt is configured for.
func install(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, installTime)
	defer cancel()
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	base := filepath.Join(cache, "hcp-aws-emulator")
	root := filepath.Join(base, "root")
	modules := filepath.Join(root, "usr/lib/python3/dist-packages")
	done := filepath.Join(base, "done")
	if err := os.MkdirAll(base, 0o755); err != nil {
		return "", err
	}
	lock, err := os.OpenFile(filepath.Join(base, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", err
	}
	if _, err := os.Stat(done); err == nil {
		return modules, nil
	}
	packages := filepath.Join(base, "packages")
	if err := errors.Join(os.RemoveAll(root), os.RemoveAll(packages), os.MkdirAll(packages, 0o755)); err != nil {
		return "", err
	}
	if err := download(ctx, base, packages); err != nil {
		return "", err
	}
	found, err := filepath.Glob(filepath.Join(packages, "*.deb"))
	if err != nil {
		return "", err
	}
	for _, file := range found {
		if err := command(ctx, packages, "dpkg", "-x", file, root); err != nil {
			return "", err
		}
	}
	if err := os.WriteFile(done, nil, 0o644); err != nil {
		return "", err
	}
	return modules, nil
}

// download fetches the packages with apt, in a configuration of their own for those of the other release.
func download(ctx context.Context, base, into string) error {
	mirror, err := mirror()
	if err != nil {
		return err
	}
	apt := filepath.Join(base, "apt")
	for _, dir := range []string{"lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(apt, dir), 0o755); err != nil {
			return err
		}
	}
	list := filepath.Join(apt, "sources.list")
	line := fmt.Sprintf("deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s %s main\n", mirror, suite)
	if err := errors.Join(os.WriteFile(list, []byte(line), 0o644), os.WriteFile(filepath.Join(apt, "status"), nil, 0o644)); err != nil {
		return err
	}
	own := []string{"-o", "Dir::Etc::sourcelist=" + list, "-o", "Dir::Etc::sourceparts=/dev/null", "-o", "Dir::State::lists=" + filepath.Join(apt, "lists"),
		"-o", "Dir::Cache=" + filepath.Join(apt, "cache"), "-o", "Dir::State::status=" + filepath.Join(apt, "status"), "-o", "APT::Sandbox::User=root"}
	if err := command(ctx, into, "apt-get", append(own, "update")...); err != nil {
		return err
	}
	if err := command(ctx, into, "apt-get", append(append(own, "download"), pure...)...); err != nil {
		return err
	}
	var missing []string
	for module, pkg := range compiled {
		if module == "cffi" {
			module = "_cffi_backend"
		}
		if exec.CommandContext(ctx, python, "-c", "import "+module).Run() != nil {
			missing = append(missing, pkg)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return command(ctx, into, "apt-get", append([]string{"-o", "APT::Sandbox::User=root", "download"}, missing...)...)
}

// mirror is where the machine gets Debian's packages.
func mirror() (string, error) {
	files, err := filepath.Glob("/etc/apt/sources.list.d/*.sources")
	if err != nil {
		return "", err
	}
	for _, file := range append(files, "/etc/apt/sources.list") {
		raw, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		for _, word := range strings.Fields(string(raw)) {
			if strings.Contains(word, "://") && strings.HasSuffix(strings.TrimSuffix(word, "/"), "debian") {
				return word, nil
			}
		}
	}
	return "", errors.New("apt's sources name no mirror of Debian: the emulated AWS needs one")
}

func command(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		text := strings.TrimSpace(out.String())
		return fmt.Errorf("%s: %w: %s", name, err, text[max(0, len(text)-1000):])
	}
	return nil
}
