import { describe, expect, it } from 'vitest';
import { areSame, chosenSides, NO_SIDE } from './sides';

const run = (name: string, span: string, state = 'done') => ({ run: name, profiles: [{ span, state }] });
const NONE = { base: NO_SIDE, candidate: NO_SIDE };
const names = (...of: Parameters<typeof chosenSides>) => { const { base, candidate } = chosenSides(...of); return [base.run, candidate.run]; };

describe('what is compared', () => {
  const runs = [run('third', '1795242413938'), run('first', '1795242331722230743'), run('second', '1795242346135690847')];

  it('is the newest run against the one before where names say nothing', () => {
    expect(names(NONE, runs, '')).toEqual(['second', 'third']);
  });

  it('is the run that is looked at against the one before, and the oldest against the next: the baseline is always older', () => {
    expect(names(NONE, runs, 'third')).toEqual(['second', 'third']);
    expect(names(NONE, runs, 'second')).toEqual(['first', 'second']);
    expect(names(NONE, runs, 'first')).toEqual(['first', 'second']);
    expect(names(NONE, runs, 'unknown')).toEqual(['second', 'third']);
  });

  it('is a run against another one of its job, by their names, never one of another job', () => {
    const jobs = [run('resnet_slow', '1795242331722'), run('resnet/fast', '1795242332722'), run('gpt_eval', '1795242339722')];
    expect(names(NONE, jobs, 'resnet_slow')).toEqual(['resnet_slow', 'resnet/fast']);
    expect(names(NONE, jobs, 'resnet/fast')).toEqual(['resnet_slow', 'resnet/fast']);
    expect(names(NONE, [...jobs, run('resnet-slow-2', '1795242330722')], 'resnet_slow')).toEqual(['resnet-slow-2', 'resnet_slow']);
    expect(names(NONE, jobs, '')).toEqual(['resnet_slow', 'resnet/fast']);
    expect(names(NONE, jobs, 'gpt_eval')).toEqual(['gpt_eval', 'gpt_eval']);
  });

  it('is of one job where names share half of their words or more', () => {
    const jobs = [run('h100_vit_pipeline', '1795242331722'), run('h100_qwen_generate', '1795242332722'), run('h100_vit_pipeline_fixed', '1795242330722')];
    expect(names(NONE, jobs, 'h100_qwen_generate')).toEqual(['h100_qwen_generate', 'h100_qwen_generate']);
    expect(names(NONE, jobs, 'h100_vit_pipeline')).toEqual(['h100_vit_pipeline_fixed', 'h100_vit_pipeline']);
  });

  it('is what the link says, known or not', () => {
    expect(names({ base: { ...NO_SIDE, run: 'nowhere' }, candidate: { ...NO_SIDE, run: '', steps: '3' } }, runs, 'first')).toEqual(['nowhere', '']);
    expect(names({ ...NONE, candidate: { ...NO_SIDE, run: 'third' } }, runs, '')).toEqual(['second', 'third']);
  });

  it('leaves out what could not be read, and takes later names where spans tell no time', () => {
    expect(names(NONE, [...runs, run('broken', '1995242413938', 'error'), run('third_2', '1795242300000'), run('named2', 'b')], '')).toEqual(['third_2', 'third']);
    expect(names(NONE, [run('epoch 1', ''), run('epoch 2', ''), run('epoch 3', '')], '')).toEqual(['epoch 2', 'epoch 3']);
  });

  it('is a run and itself where there is no other, and nothing where there is none', () => {
    const alone = chosenSides(NONE, runs.slice(0, 1), '');
    expect([alone.base.run, alone.candidate.run, areSame(alone)]).toEqual(['third', 'third', true]);
    expect(areSame({ ...alone, base: { ...alone.base, steps: '3' } })).toBe(false);
    expect(names(NONE, [], '')).toEqual([null, null]);
  });
});
