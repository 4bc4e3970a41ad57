import { expect, it } from 'vitest';
import { finding, place, saving } from '../testing/fixtures';
import { assistantMarkdown, findingMarkdown, reportMarkdown } from './markdownOut';

const FINDING = finding('a', {
  message: '`loss.item()` waits', cost_ns: 22_100_000, share: 0.175, matches: 1, saving: saving(18_400_000, { low_ns: 12_000_000, high_ns: 21_300_000 }),
  places: [place({ line: 7, precision: 'definition' })],
  details: [{ kind: 'note', text: 'Flagged because.' }, { kind: 'code_change', before: 'a ```b```', after: 'c\n', caveat: 'Careful.' }],
});

it('says what, how much, where, why and what to do', () => {
  const text = findingMarkdown(FINDING, 'step');
  expect(text).toContain('### `loss.item()` waits');
  expect(text).toContain('**Saves ≈ 18.4 ms per step** (at least 12 ms, at most 21.3 ms; computed from the step’s timeline without it)');
  expect(text).toContain('costs 22.1 ms per step (17.5 % of a step)');
  expect(text).toContain('1 match.');
  expect(text).toContain('- `/job/train.py:7` in `train_step` (function definition), 12 matches');
  expect(text).toContain('Flagged because.');
  expect(text).toContain('**Fix:** Do it once');
  expect(text).toContain('Note: Careful.');
});

it('fences code that holds fences', () => {
  expect(findingMarkdown(FINDING, 'step')).toContain('````python\na ```b```\n````');
});

it('gives an assistant the source, the diff and the environment', () => {
  const diff = '--- a/train.py\n+++ b/train.py\n-```\n+b\n';
  const changed = { ...FINDING, code_fixes: { changes: [{ safety: 'same results', check: 'Look.', diff }] } };
  const source = { file: '/job/train.py', first: 6, lines: ['def step():', '    wait()'] };
  const text = assistantMarkdown(changed, 'step', { source, environment: ['torch 2.13', 'A100'] });
  expect(text).toMatch(/^The following was made from a recording/);
  expect(text).toContain(findingMarkdown(FINDING, 'step'));
  expect(text).toContain('**Source**, `/job/train.py` from line 6:\n\n```python\ndef step():\n    wait()\n```');
  expect(text).toContain(`**Change** (same results; check first: Look.):\n\n\`\`\`\`diff\n${diff}\`\`\`\``);
  expect(text).toMatch(/\*\*Environment:\*\* torch 2\.13; A100\.$/);
});

it('gives an assistant the finding alone where nothing else is known', () => {
  const text = assistantMarkdown(FINDING, 'step', { source: null, environment: [] });
  expect(text.split('\n\n').slice(1).join('\n\n')).toBe(findingMarkdown(FINDING, 'step'));
});

it('says a saving of nothing in words', () => {
  const text = findingMarkdown(finding('a', { saving: saving(0, { high_ns: 78_683_500 }) }), 'step');
  expect(text).toContain('\n\nNo saving expected, at most 78.7 ms; costs 5 ms per step');
  expect(text).not.toMatch(/(?<![\d.])0 ns/);
});

it('owns up to a missing estimate', () => {
  expect(findingMarkdown(finding('a', { saving: null, share: null }), 'trace')).toContain('No saving estimated; costs 5 ms per trace.');
});

it('heads the report with the profile and its step time', () => {
  const text = reportMarkdown({ run: 'job', worker: 'w', per: 'step', stepNs: 126_300_000, findings: [FINDING, FINDING] });
  expect(text).toMatch(/^## TorchTidy: 2 findings in job, w\n\nMedian step time: 126 ms\./);
});
