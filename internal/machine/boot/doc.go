// Package boot is the first process of a worker of platform Local.
//
// The pod of a machine stands for a virtual machine:
//
//	virtual machine            here
//	disk                       an emptyDir at /var; /etc lies there too, /usr/local, /opt, /root and /home are links into it
//	user data                  the bootstrap Secret, mounted at /machine/user-data
//	first boot                 Ignition is applied once; a mark on the disk says so
//	console                    standard output
//	power button               SIGTERM: units are stopped, exit with 0, the pod has succeeded and stays off
//	reboot, crash              SIGINT, or any other end: exit with something else, and the kubelet starts the container again
//
// Folders beside /var and /etc are those of the image again after a reboot.
package boot
