package nodetrust

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// verifyTimeout bounds a connection to the API server, restartTimeout how long the kubelet may take to be there again.
	verifyTimeout, restartTimeout = 10 * time.Second, 90 * time.Second
	restartPoll                   = 500 * time.Millisecond
	program                       = "kubelet"
)

// errUnreachable is a server of which nobody knows by whom its certificate is signed, such as one behind a proxy.
var errUnreachable = errors.New("it can't be reached from here")

// verify makes a TLS connection as a kubelet with these authorities would.
func verify(ctx context.Context, server, serverName string, roots *x509.CertPool) error {
	u, err := url.Parse(server)
	if err != nil || u.Hostname() == "" {
		return fmt.Errorf("server %q is no URL", server)
	}
	port := u.Port()
	if port == "" {
		port = "443"
	}
	if serverName == "" {
		serverName = u.Hostname()
	}
	ctx, cancel := context.WithTimeout(ctx, verifyTimeout)
	defer cancel()
	dialer := tls.Dialer{Config: &tls.Config{RootCAs: roots, ServerName: serverName, MinVersion: tls.VersionTLS12}}
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err == nil {
		return conn.Close()
	}
	var bad *tls.CertificateVerificationError
	if errors.As(err, &bad) {
		return fmt.Errorf("server %s: %w", server, err)
	}
	return fmt.Errorf("server %s: %w: %w", server, errUnreachable, err)
}

// restartKubelet ends the kubelet, and returns when who started it has started it anew: the first process of a node keeps it running.
func restartKubelet(ctx context.Context, proc string) error {
	old, err := kubeletOf(proc)
	if err != nil {
		return err
	}
	if old != 0 {
		if err := syscall.Kill(old, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("ending the kubelet, process %d: %w", old, err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, restartTimeout)
	defer cancel()
	for {
		now, err := kubeletOf(proc)
		if err != nil {
			return err
		}
		if now != 0 && now != old {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no new kubelet runs after %s; see its log on the node", restartTimeout)
		case <-time.After(restartPoll):
		}
	}
}

// kubeletOf finds the kubelet by its name among the children of the first process: a pod can't have one of these. 0: none runs.
func kubeletOf(proc string) (int, error) {
	entries, err := os.ReadDir(proc)
	if err != nil {
		return 0, fmt.Errorf("listing processes: %w", err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile(filepath.Join(proc, e.Name(), "stat"))
		if err != nil {
			continue // it has ended
		}
		if name, parent := parseStat(string(stat)); name == program && parent == 1 {
			return pid, nil
		}
	}
	return 0, nil
}

// parseStat reads the name and the parent of a process: PID (NAME) STATE PARENT …, where the name may hold anything.
func parseStat(stat string) (name string, parent int) {
	open, end := strings.IndexByte(stat, '('), strings.LastIndexByte(stat, ')')
	if open < 0 || end < open {
		return "", 0
	}
	fields := strings.Fields(stat[end+1:])
	if len(fields) < 2 || fields[0] == "Z" {
		return "", 0
	}
	parent, _ = strconv.Atoi(fields[1])
	return stat[open+1 : end], parent
}
