package conformance

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"hcp.internal/platform/internal/image"
	"hcp.internal/platform/internal/local/debian"
)

// Parts are what the suite's images are put together from.
type Parts struct {
	Bin     string // folder with agnhost, nonewprivs, sample-apiserver and server, which is etcd
	CoreDNS string // program
	Pause   string // program
	Sources string // folder of the images' sources in the module of Kubernetes, test/images
	// Shell is a busybox with a link for each of its programs and bash as its shell, Tools what agnhost's image has beside it, Nginx the server.
	Shell, Tools, Nginx []image.File
}

// toolPackages are the Debian packages with what tests call in the images agnhost and glibc-dns-testing.
var toolPackages = []string{"bash", "bind9-dnsutils", "curl", "iperf", "iproute2", "libc-bin", "netcat-openbsd"}

// makers are the images that can be made, by the last part of their names. Their contents follow the Dockerfiles of the sources.
var makers = map[string]func(p Parts, ref string) (v1.Image, error){
	"agnhost": func(p Parts, ref string) (v1.Image, error) { return p.agnhost(ref, []string{"pause"}) },
	"busybox": func(p Parts, ref string) (v1.Image, error) { return p.shell(ref, "") },
	"etcd": func(p Parts, ref string) (v1.Image, error) {
		return p.program(ref, "server", "/usr/local/bin/etcd", 0o755)
	},
	"glibc-dns-testing": func(p Parts, ref string) (v1.Image, error) {
		return build(ref, image.Config{Cmd: []string{"bash"}}, system(), p.Shell, p.Tools)
	},
	"kitten":   func(p Parts, ref string) (v1.Image, error) { return p.picture(ref, "kitten") },
	"nautilus": func(p Parts, ref string) (v1.Image, error) { return p.picture(ref, "nautilus") },
	"nginx":    func(p Parts, ref string) (v1.Image, error) { return p.nginx(ref) },
	"nonewprivs": func(p Parts, ref string) (v1.Image, error) {
		return p.program(ref, "nonewprivs", "/usr/local/bin/nnp", 0o755|fs.ModeSetuid)
	},
	"nonroot": func(p Parts, ref string) (v1.Image, error) { return p.shell(ref, "1234") },
	"pause": func(p Parts, ref string) (v1.Image, error) {
		return build(ref, image.Config{Entrypoint: []string{"/pause"}, User: "65535"}, []image.File{{Path: "/pause", Mode: 0o755, Source: p.Pause}})
	},
	"sample-apiserver": func(p Parts, ref string) (v1.Image, error) {
		return p.program(ref, "sample-apiserver", "/sample-apiserver", 0o755)
	},
}

// Image makes the image that ref names, e.g. "10.244.0.1:5000/conformance/e2e/busybox:1.37.0-1"; nil when there is no recipe for it.
func (p Parts) Image(ref string) (v1.Image, error) {
	maker := makers[nameOf(ref)]
	if maker == nil {
		return nil, nil
	}
	img, err := maker(p, ref)
	if err != nil {
		return nil, fmt.Errorf("building %s: %w", ref, err)
	}
	return img, nil
}

// Recipes lists the images that can be made.
func Recipes() []string { return slices.Sorted(maps.Keys(makers)) }

// nameOf is the last part of the name of an image, without tag.
func nameOf(ref string) string {
	name, _, _ := strings.Cut(path.Base(ref), ":")
	return name
}

// build adds ref as a label, so that two tags never are one image: a node would report one by the name of the other.
func build(ref string, cfg image.Config, sets ...[]image.File) (v1.Image, error) {
	cfg.Labels = map[string]string{"conformance.hypershift.openshift.io/made-for": ref}
	var layers []v1.Layer
	for _, files := range sets {
		l, err := image.NewLayer(files...)
		if err != nil {
			return nil, err
		}
		layers = append(layers, l)
	}
	return image.New(cfg, layers...)
}

// system are the files that a program expects to find in any image.
func system() []image.File {
	return append(image.Base(nil),
		image.File{Path: "/var/tmp", Dir: true, Mode: 0o777 | fs.ModeSticky},
		image.File{Path: "/run", Dir: true},
		image.File{Path: "/uploads", Dir: true},
	)
}

func (p Parts) shell(ref, user string) (v1.Image, error) {
	return build(ref, image.Config{Cmd: []string{"sh"}, User: user}, system(), p.Shell)
}

// program is an image of one program. The module's own images have a shell beside it; so have these.
func (p Parts) program(ref, name, target string, mode fs.FileMode) (v1.Image, error) {
	cfg := image.Config{Entrypoint: []string{target}}
	return build(ref, cfg, system(), p.Shell, []image.File{{Path: target, Mode: mode, Source: filepath.Join(p.Bin, name)}})
}

func (p Parts) agnhost(ref string, cmd []string, more ...image.File) (v1.Image, error) {
	files := append([]image.File{
		{Path: "/agnhost", Mode: 0o755, Source: filepath.Join(p.Bin, "agnhost")},
		{Path: "/agnhost-2", Link: "agnhost"},
		{Path: "/coredns", Mode: 0o755, Source: p.CoreDNS},
		{Path: "/localhost.crt", Source: filepath.Join(p.Sources, "agnhost/porter/localhost.crt")},
		{Path: "/localhost.key", Source: filepath.Join(p.Sources, "agnhost/porter/localhost.key")},
		// Users and groups that tests of supplemental groups ask for.
		{Path: "/etc/passwd", Data: []byte("root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\nuser-defined-in-image:x:1000:1000::/home/user-defined-in-image:/bin/sh\n")},
		{Path: "/etc/group", Data: []byte("root:x:0:\nnogroup:x:65534:\nuser-defined-in-image:x:1000:\ngroup-defined-in-image:x:50000:user-defined-in-image\n")},
	}, more...)
	return build(ref, image.Config{Entrypoint: []string{"/agnhost"}, Cmd: cmd}, system(), p.Shell, p.Tools, files)
}

// picture is a web server with a picture, which rolling updates are watched by.
func (p Parts) picture(ref, name string) (v1.Image, error) {
	html := filepath.Join(p.Sources, name, "html")
	return p.agnhost(ref, []string{"test-webserver"},
		image.File{Path: "/" + name + ".jpg", Source: filepath.Join(html, name+".jpg")},
		image.File{Path: "/data.json", Source: filepath.Join(html, "data.json")})
}

const nginxConfig = `user nobody nogroup;
worker_processes 1;
error_log /dev/stderr notice;
pid /run/nginx.pid;
events { worker_connections 1024; }
http {
  include /etc/nginx/mime.types;
  default_type application/octet-stream;
  access_log /dev/stdout;
  server {
    listen 80;
    root /usr/share/nginx/html;
    index index.html;
  }
}
`

const nginxPage = "<!DOCTYPE html>\n<html><head><title>Welcome to nginx!</title></head><body><h1>Welcome to nginx!</h1></body></html>\n"

func (p Parts) nginx(ref string) (v1.Image, error) {
	files := slices.Concat(p.Nginx, []image.File{
		{Path: "/etc/nginx/nginx.conf", Data: []byte(nginxConfig)},
		{Path: "/usr/share/nginx/html/index.html", Data: []byte(nginxPage)},
		{Path: "/var/log/nginx", Dir: true},
		{Path: "/var/lib/nginx", Dir: true},
	})
	return build(ref, image.Config{Cmd: []string{"nginx", "-g", "daemon off;"}}, system(), p.Shell, files)
}

// packages fills in what comes from Debian, which is downloaded once into the cache.
func (p *Parts) packages(ctx context.Context, cache *debian.Cache) error {
	get := func(set string, names ...string) ([]image.File, error) {
		unpacked, err := cache.Get(ctx, set, names)
		if err != nil {
			return nil, fmt.Errorf("downloading the packages of the images (%s): %w", set, err)
		}
		return debian.Files(unpacked, image.Skip)
	}
	var errs [3]error
	p.Shell, errs[0] = get("conformance-shell", "bash-static", "busybox-static")
	p.Tools, errs[1] = get("conformance-tools", toolPackages...)
	p.Nginx, errs[2] = get("conformance-nginx", "nginx")
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	// A link that Debian's maintainer scripts would make.
	p.Tools = append(p.Tools, image.File{Path: "/usr/bin/nc", Link: "nc.openbsd"})
	return p.link(ctx)
}

// link adds a link for each program that busybox is, but for its shell: that of Debian calls busybox's own programs, whatever is installed, and
// keeps variables to itself whose names are not those of shell variables, such as data-1, which the suite looks for.
func (p *Parts) link(ctx context.Context) error {
	i := slices.IndexFunc(p.Shell, func(f image.File) bool { return f.Path == "/usr/bin/busybox" })
	if i < 0 {
		return errors.New("Debian's package busybox-static has no /bin/busybox")
	}
	out, err := exec.CommandContext(ctx, p.Shell[i].Source, "--list").Output()
	if err != nil {
		return fmt.Errorf("asking busybox for its programs: %w", err)
	}
	for _, name := range strings.Fields(string(out)) {
		if name != "busybox" && name != "sh" {
			p.Shell = append(p.Shell, image.File{Path: "/usr/bin/" + name, Link: "busybox"})
		}
	}
	p.Shell = append(p.Shell, image.File{Path: "/usr/bin/sh", Link: "bash-static"})
	return nil
}
