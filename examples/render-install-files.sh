#!/bin/sh
# Makes what docs/howto/render-install-files.md starts from, in the current folder.
set -e
mkdir manifests
cat > manifests/demo.yaml <<'END'
version: 1
description: a trainer on Megatron-LM
values:
  model_path: {description: folder of the checkpoint}
  devices: {description: NPUs that train, default: 8}
environment:
  versions: {python: ">=3.10", torch: "==2.8.0"}
  variables: {CUDA_DEVICE_MAX_CONNECTIONS: "1"}
  paths: {PYTHONPATH: ["${workspace}/Megatron-LM"]}
launch:
  grpo:
    description: GRPO on one machine
    component: slime
    needs: ["${model_path}"]
    command: python3 train.py
    arguments:
      checkpoint: {--hf-checkpoint: "${model_path}"}
      train: {--lr: 1e-6, --actor-num-gpus-per-node: "${devices}"}
components:
  megatron-lm:
    description: training
    source: {git: "https://github.com/NVIDIA/Megatron-LM.git"}
    pin: 3714d81d418c9f1bca4594fc35f9e8289f652862
    checkout: Megatron-LM
    install:
      - {run: pip install --no-deps -e .}
  slime:
    description: the trainer
    source: {git: "https://github.com/THUDM/slime.git"}
    pin: 2418a7844abe4d490a1676dcf88fc3401adab362
    install:
      - {run: pip install -e .}
END
printf '# Our stack\n\n<!%s patchkit versions: manifests/demo.yaml %s>\n<!%s patchkit versions: end %s>\n' -- -- -- -- > README.md
