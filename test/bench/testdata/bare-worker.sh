# The least that makes a container a node: what workers do besides is what is measured.
set -eu
mount --make-rshared /
mount -t tmpfs -o mode=0755 tmpfs /run
mkdir -p /var/lib/kubelet /var/lib/containerd /var/log/pods /var/tmp /etc/cni/net.d
cp /machine/config/cni.conflist /etc/cni/net.d/10-bare.conflist
if [[ -e /sys/fs/cgroup/cgroup.controllers ]]; then # version 2: no processes beside groups
  mkdir -p /sys/fs/cgroup/init.scope
  for pid in $(</sys/fs/cgroup/cgroup.procs); do echo "$pid" > /sys/fs/cgroup/init.scope/cgroup.procs || true; done
  for name in $(</sys/fs/cgroup/cgroup.controllers); do echo "+$name" > /sys/fs/cgroup/cgroup.subtree_control; done
fi
containerd --config /machine/config/containerd.toml &
until [[ -S /run/containerd/containerd.sock ]]; do sleep 0.02; done
exec kubelet --config=/machine/config/kubelet.yaml --kubeconfig=/machine/config/kubeconfig --hostname-override="$NODE_NAME" --node-ip="$NODE_IP" --v=2
