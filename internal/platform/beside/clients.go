package beside

import (
	"crypto/sha256"
	"os"
	"sync"
)

// Clients are what a controller calls a cloud with, by whatever tells accounts apart. Each is made when it is first needed, and is kept once that has succeeded,
// for as long as the file of its credentials stays as it is: libraries of clouds read it once. The zero value has none. It is safe for concurrent use.
type Clients[K comparable, C any] struct {
	mu   sync.Mutex
	made map[K]made[C]
}

// made is a client, and the content of the file that it was made from.
type made[C any] struct {
	client C
	from   [sha256.Size]byte
}

// Get is the client of an account, made by open unless there is one of the same credentials. file is what open reads these from; empty: from no file.
func (c *Clients[K, C]) Get(account K, file string, open func() (C, error)) (C, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	from := digest(file) // before open reads it: what changes in between is noticed by the next call
	if have, ok := c.made[account]; ok && have.from == from {
		return have.client, nil
	}
	delete(c.made, account)
	client, err := open()
	if err != nil {
		return client, err
	}
	if c.made == nil {
		c.made = map[K]made[C]{}
	}
	c.made[account] = made[C]{client, from}
	return client, nil
}

// digest identifies the content of a file. One that can't be read has none, and open says so.
func digest(file string) [sha256.Size]byte {
	raw, err := os.ReadFile(file)
	if err != nil {
		return [sha256.Size]byte{}
	}
	return sha256.Sum256(raw)
}
