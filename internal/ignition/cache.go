package ignition

import "sync"

// payloadCache holds the payload of each token Secret with the key of its inputs.
type payloadCache struct {
	mu   sync.Mutex
	made map[string]made
}

type made struct {
	key  string
	data []byte
}

func (c *payloadCache) get(secret, key string) ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m, ok := c.made[secret]
	return m.data, ok && m.key == key
}

func (c *payloadCache) put(secret, key string, data []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made == nil {
		c.made = map[string]made{}
	}
	c.made[secret] = made{key: key, data: data}
}

func (c *payloadCache) forget(secret string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.made, secret)
}
