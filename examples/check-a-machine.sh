#!/bin/sh
# Makes what docs/howto/check-a-machine.md starts from, in the current folder.
set -e
git init -q upstream && cd upstream
printf '[options]\ninstall_requires =\n    torch==2.9.1\n    flash-attn\n' > setup.cfg
git add . && git commit -q -m 'Start'
pin=$(git rev-parse HEAD)
cd ..
mkdir manifests
cat > manifests/demo.yaml <<END
version: 1
values:
  model_path: {description: folder of the checkpoint}
environment:
  versions: {cann: "==8.5.0", hdk: ">=25.3.RC1", torch: "==2.8.0", torchvision: "==0.22.1"}
  variables: {CUDA_DEVICE_MAX_CONNECTIONS: "1", MODEL: "\${model_path}"}
  unsupported: {flash-attn: no NPU kernels}
components:
  trainer:
    source: {git: ./upstream}
    pin: $pin
    install:
      - {run: pip install -e .}
END
python3 -m venv --without-pip .venv
packages=$(echo .venv/lib/python*/site-packages)
for each in torch-2.9.1 flash_attn-2.8.3; do
  mkdir "$packages/$each.dist-info"
  printf 'Metadata-Version: 2.1\nName: %s\nVersion: %s\n' "${each%-*}" "${each#*-}" > "$packages/$each.dist-info/METADATA"
done
mkdir -p Ascend/ascend-toolkit/latest
echo 'toolkit_running_version=[7.7.0.1.238:8.1.RC1]' > Ascend/ascend-toolkit/latest/version.cfg
patchkit fetch
