import { expect, it } from 'vitest';
import { jobSettings } from './jobSettings';

const remarks = (...parameters: Parameters<typeof jobSettings>) => jobSettings(...parameters).filter(({ remark }) => remark).map(({ name, value, remark }) => `${name}: ${value} (${remark})`);

it('says nothing of what is not known', () => {
  expect(jobSettings({}, true)).toEqual([]);
  expect(jobSettings({ numerics: { tf32_matmul: null }, threads: { available_cores: 8 } }, true)).toEqual([]);
});

it('remarks on what differs from what is usually best', () => {
  const numerics = { tf32_matmul: false, tf32_cudnn: true, cudnn_benchmark: false, cudnn_deterministic: true, deterministic_algorithms: false, anomaly_mode: true };
  expect(remarks({ threads: { intra_op: 16, available_cores: 8 }, numerics }, true)).toEqual([
    'Threads in an operator: 16 on 8 cores (more than there are cores)',
    'TF32 in matmul: off (float32 products do not use the tensor cores)',
    'cuDNN benchmark: off (where shapes stay the same, the fastest algorithm is not looked for)',
    'cuDNN deterministic: on (rules out faster algorithms)',
    'Anomaly mode: on (for debugging: every operator gets slower)',
  ]);
});

it('leaves out on a CPU what only a GPU has', () => {
  expect(jobSettings({ numerics: { tf32_matmul: false, cudnn_benchmark: false, anomaly_mode: false } }, false).map(({ name }) => name)).toEqual(['Anomaly mode']);
  expect(remarks({ loaders: [{ dataset: 'Images', num_workers: 4, pin_memory: false, persistent_workers: true }] }, false)).toEqual([]);
});

it('has each optimizer and loader', () => {
  const optimizers = [{ kind: 'Adam', foreach: false }, { kind: 'SGD', fused: true, foreach: false }, { kind: 'AdamW' }];
  const loaders = [{ dataset: 'Images', num_workers: 0, pin_memory: false }, { dataset: 'Text', num_workers: 2, persistent_workers: false }];
  expect(jobSettings({ optimizers, loaders }, true).map(({ name, value, remark }) => [name, value, remark])).toEqual([
    ['Optimizer Adam', 'one parameter at a time', 'fused or foreach updates all parameters at once'],
    ['Optimizer SGD', 'fused', ''],
    ['Optimizer AdamW', 'usual implementation', ''],
    ['Loader of Images', '0 workers, pinned memory off', 'batches are loaded in the training process; copies to the GPU wait'],
    ['Loader of Text', '2 workers', 'workers restart in each epoch'],
  ]);
});
