package beside

import "sync"

// Clients are what a controller calls a cloud with, by whatever tells accounts apart. Each is made when it is first needed, and is kept once that has succeeded.
// The zero value has none. It is safe for concurrent use.
type Clients[K comparable, C any] struct {
	mu   sync.Mutex
	made map[K]C
}

// Get is the client of an account, made by open unless there is one.
func (c *Clients[K, C]) Get(account K, open func() (C, error)) (C, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if client, ok := c.made[account]; ok {
		return client, nil
	}
	client, err := open()
	if err != nil {
		return client, err
	}
	if c.made == nil {
		c.made = map[K]C{}
	}
	c.made[account] = client
	return client, nil
}
