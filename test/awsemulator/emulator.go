package awsemulator

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

const (
	startTime = time.Minute
	// longest is how long an emulator lives, whatever becomes of its test.
	longest = time.Hour
	// maxState bounds what is read of an answer, in bytes.
	maxState = 64 << 20
)

// Emulator is an emulated AWS. URL is the endpoint of all services.
type Emulator struct {
	*Recorder
	URL    string
	direct string // moto itself
}

// Start installs moto if need be, and runs it until the test ends. Everything is account Account's, whatever the credentials, but for those of Owner.
func Start(t testing.TB) *Emulator {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), longest)
	t.Cleanup(cancel)
	modules, err := install(ctx)
	if err != nil {
		t.Fatalf("installing the emulated AWS: %v", err)
	}
	direct := run(ctx, t, modules)
	e := &Emulator{direct: direct, Recorder: newRecorder(direct)}
	server := httptest.NewServer(e.Recorder)
	t.Cleanup(server.Close)
	e.URL = server.URL
	return e
}

// Environment is what programs need to call the emulator.
func (e *Emulator) Environment() map[string]string {
	return map[string]string{
		"AWS_ENDPOINT_URL": e.URL, "AWS_ACCESS_KEY_ID": "emulated", "AWS_SECRET_ACCESS_KEY": "emulated", "AWS_SESSION_TOKEN": "",
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_PROFILE": "",
	}
}

// Use sets the environment for the test.
func (e *Emulator) Use(t testing.TB) {
	for key, value := range e.Environment() {
		t.Setenv(key, value)
	}
}

// run starts moto on a port of the loopback and waits until it answers.
func run(ctx context.Context, t testing.TB, modules string) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	listener.Close()
	logs, err := os.Create(filepath.Join(t.TempDir(), "moto.log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, python, "-m", "moto.server", "-H", "127.0.0.1", "-p", port)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+modules, "PYTHONDONTWRITEBYTECODE=", "MOTO_IAM_LOAD_MANAGED_POLICIES=false")
	cmd.Stdout, cmd.Stderr = logs, logs
	// It must not outlive a test that was killed.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatalf("starting moto: %v", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		_ = logs.Close()
	})
	url := "http://" + address
	deadline := time.Now().Add(startTime)
	for {
		request, _ := http.NewRequestWithContext(ctx, http.MethodGet, url+"/moto-api/data.json", nil)
		if answer, err := http.DefaultClient.Do(request); err == nil {
			answer.Body.Close()
			return url
		}
		select {
		case err := <-ended:
			ended <- err
			raw, _ := os.ReadFile(logs.Name())
			t.Fatalf("moto ended: %v: %s", err, raw[max(0, len(raw)-2000):])
		case <-time.After(100 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatalf("moto doesn't answer on %s after %s", address, startTime)
		}
	}
}

// Reset forgets all that was made, recorded and asked for.
func (e *Emulator) Reset(t testing.TB) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, e.direct+"/moto-api/reset", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatalf("resetting moto: %v", err)
	}
	answer.Body.Close()
	e.Recorder.reset()
}
