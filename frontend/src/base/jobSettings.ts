/** Settings of the recorded job in words, with a remark on those that differ from the usual best choice. */

import { plural } from './units';

type Known<T> = T | null | undefined;

export interface JobSettings {
  threads?: { intra_op?: Known<number>; inter_op?: Known<number>; available_cores?: Known<number> };
  numerics?: {
    float32_matmul_precision?: Known<string>; tf32_matmul?: Known<boolean>; tf32_cudnn?: Known<boolean>; cudnn_benchmark?: Known<boolean>;
    cudnn_deterministic?: Known<boolean>; deterministic_algorithms?: Known<boolean>; anomaly_mode?: Known<boolean>;
  };
  optimizers?: readonly { kind: string; foreach?: Known<boolean>; fused?: Known<boolean> }[];
  loaders?: readonly { dataset: string; num_workers?: Known<number>; pin_memory?: Known<boolean>; persistent_workers?: Known<boolean> }[];
}

export interface JobSetting { name: string; value: string; remark: string }

const onOff = (on: boolean): string => (on ? 'on' : 'off');

/** The known settings, in the order of the groups; `remark` is empty without one. `gpu`: the job used one. */
export function jobSettings({ threads = {}, numerics = {}, optimizers = [], loaders = [] }: JobSettings, gpu: boolean): JobSetting[] {
  const found: JobSetting[] = [];
  const add = (name: string, value: string, remark: string | false = ''): void => void found.push({ name, value, remark: remark || '' });
  const flag = (name: string, on: Known<boolean>, remark: string | false): void => { if (typeof on === 'boolean') add(name, onOff(on), remark); };
  const { intra_op: intra, available_cores: cores } = threads;
  if (typeof intra === 'number') add('Threads in an operator', typeof cores === 'number' ? `${intra} on ${plural(cores, 'core')}` : `${intra}`, typeof cores === 'number' && intra > cores && 'more than there are cores');
  if (typeof numerics.float32_matmul_precision === 'string') add('float32 matmul precision', numerics.float32_matmul_precision);
  if (gpu) {
    flag('TF32 in matmul', numerics.tf32_matmul, numerics.tf32_matmul === false && 'float32 products do not use the tensor cores');
    flag('TF32 in cuDNN', numerics.tf32_cudnn, numerics.tf32_cudnn === false && 'float32 convolutions do not use the tensor cores');
    flag('cuDNN benchmark', numerics.cudnn_benchmark, numerics.cudnn_benchmark === false && 'where shapes stay the same, the fastest algorithm is not looked for');
    flag('cuDNN deterministic', numerics.cudnn_deterministic, numerics.cudnn_deterministic === true && 'rules out faster algorithms');
  }
  flag('Deterministic algorithms', numerics.deterministic_algorithms, numerics.deterministic_algorithms === true && 'rules out faster algorithms');
  flag('Anomaly mode', numerics.anomaly_mode, numerics.anomaly_mode === true && 'for debugging: every operator gets slower');
  for (const { kind, foreach, fused } of optimizers) {
    const how = fused ? 'fused' : foreach ? 'foreach' : foreach === false ? 'one parameter at a time' : 'usual implementation';
    add(`Optimizer ${kind}`, how, foreach === false && !fused && 'fused or foreach updates all parameters at once');
  }
  for (const { dataset, num_workers: workers, pin_memory: pinned, persistent_workers: persistent } of loaders) {
    const facts = [typeof workers === 'number' && plural(workers, 'worker'), typeof pinned === 'boolean' && `pinned memory ${onOff(pinned)}`];
    const remarks = [workers === 0 && 'batches are loaded in the training process', gpu && pinned === false && 'copies to the GPU wait',
      Number(workers) > 0 && persistent === false && 'workers restart in each epoch'];
    add(`Loader of ${dataset}`, facts.filter(Boolean).join(', '), remarks.filter(Boolean).join('; '));
  }
  return found;
}
