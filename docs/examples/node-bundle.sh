#!/usr/bin/env bash
# Prints a script that makes the machine on which it is run a node of a hosted cluster. See docs/bring-your-own-nodes.md.
#
#   KUBECONFIG=demo.kubeconfig ./node-bundle.sh > join.sh      # needs kubectl, and an administrator of the hosted cluster
#   scp join.sh worker: && ssh worker sudo bash join.sh        # the machine has containerd and a kubelet; the script is good for an hour
#
# API_SERVER is the URL at which nodes reach the API, by default that of the kubeconfig. VALIDITY is how long the credential is good.
set -euo pipefail

namespace=openshift-machine-config-operator
account=node-bootstrapper
server=${API_SERVER:-$(kubectl config view --minify --output 'jsonpath={.clusters[0].cluster.server}')}
authority=$(kubectl get configmap -n kube-system kube-root-ca.crt --output 'jsonpath={.data.ca\.crt}')
callers=$(kubectl get configmap -n kube-system extension-apiserver-authentication --output 'jsonpath={.data.client-ca-file}')
dns=$(kubectl get service -n kube-system kube-dns --output 'jsonpath={.spec.clusterIP}')

# The account may ask for certificates of nodes, and nothing else. Somebody has to approve what it asks for.
kubectl get namespace "$namespace" > /dev/null 2>&1 || kubectl create namespace "$namespace" > /dev/null
kubectl get serviceaccount -n "$namespace" "$account" > /dev/null 2>&1 || kubectl create serviceaccount -n "$namespace" "$account" > /dev/null
token=$(kubectl create token -n "$namespace" "$account" --duration "${VALIDITY:-1h}")

cat <<JOIN
#!/usr/bin/env bash
set -euo pipefail
umask 077
mkdir -p /etc/kubernetes/manifests /etc/kubernetes/kubelet.conf.d /var/lib/kubelet /etc/systemd/system

cat > /etc/kubernetes/bootstrap.kubeconfig <<'FILE'
apiVersion: v1
kind: Config
current-context: default
clusters:
- name: default
  cluster:
    server: $server
    certificate-authority-data: $(base64 -w0 <<< "$authority")
users:
- name: default
  user:
    token: $token
contexts:
- name: default
  context: {cluster: default, user: default}
FILE

cat > /etc/kubernetes/kubelet-ca.crt <<'FILE'
$callers
FILE

cat > /etc/kubernetes/kubelet.conf <<'FILE'
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: /etc/kubernetes/kubelet-ca.crt}
authorization: {mode: Webhook}
cgroupDriver: systemd
clusterDNS: [$dns]
clusterDomain: cluster.local
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
readOnlyPort: 0
rotateCertificates: true
serverTLSBootstrap: true
staticPodPath: /etc/kubernetes/manifests
FILE

cat > /etc/systemd/system/kubelet.service <<'FILE'
[Unit]
Description=Kubernetes kubelet
Wants=containerd.service network-online.target
After=containerd.service network-online.target

[Service]
ExecStart=/usr/local/bin/kubelet --config=/etc/kubernetes/kubelet.conf --config-dir=/etc/kubernetes/kubelet.conf.d --bootstrap-kubeconfig=/etc/kubernetes/bootstrap.kubeconfig --kubeconfig=/var/lib/kubelet/kubeconfig
Restart=always
RestartSec=2

[Install]
WantedBy=multi-user.target
FILE

if [[ -d /run/systemd/system ]]; then
  systemctl daemon-reload
  systemctl enable --now kubelet.service
else
  echo "There is no systemd here: start the kubelet with the arguments in /etc/systemd/system/kubelet.service."
fi
JOIN
