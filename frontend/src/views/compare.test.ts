import { fireEvent, screen, within } from '@testing-library/preact';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { CompareAnswer, Comparison, ProfileReport, ProfileState } from '../api/types.gen';
import { change, compareAnswer, finding, ledger, ledgerEntry, noAccount, operatorChange, flame, outlier, place, report, state } from '../testing/fixtures';
import { effects, key, openPage } from '../testing/page';
import { Refusal, serve, type TestServer } from '../testing/server';

beforeEach(() => { // tests have no layout: a pane of this height has visible rows
  vi.spyOn(HTMLElement.prototype, 'offsetHeight', 'get').mockReturnValue(400);
  vi.spyOn(HTMLElement.prototype, 'offsetWidth', 'get').mockReturnValue(900);
  vi.spyOn(HTMLElement.prototype, 'clientHeight', 'get').mockReturnValue(400);
});

const STEPS = {
  basis: 'profiler_step' as const, count: 4, median_ns: 100e6,
  items: [100, 100, 300, 100].map((ms, index) => ({
    name: `ProfilerStep#${index + 3}`, start_ns: index * 1e8, duration_ns: ms * 1e6, oddity: index === 2 ? 'outlier' as const : null,
  })),
};

interface Runs { [run: string]: Partial<ProfileState>[] }
const TWO: Runs = { before: [{ span: '1795242331722' }], after: [{ span: '1795242346135' }] };

/** A server with these runs, whose comparison is `answer`; the oldest run is the first. */
function serveRuns(answer: CompareAnswer, runs: Runs = TWO, account: ProfileReport['ledger'] = noAccount()): TestServer {
  const profiles = (run: string) => (runs[run] ?? []).map((changes) => state(changes));
  return serve({
    runs: () => ({ logdirs: ['/runs'], scanning: false, runs: Object.keys(runs).map((run) => ({ run, profiles: profiles(run) })) }),
    report: (query) => {
      const known = profiles(query.get('run') ?? '').filter(({ worker }) => (query.get('worker') ?? worker) === worker);
      const reports: ProfileReport[] = known.filter(({ state: of }) => of === 'done')
        .map(({ worker, span }) => report({ worker, span, steps: STEPS, ledger: account, findings: [finding('a')], outliers: [outlier({ step: 2, name: 'ProfilerStep#5', text: 'Step 5 waited for `data`.' })] }));
      return { states: known, report: { run: query.get('run'), profiles: reports }, ranks: [0], pending: 0 };
    },
    compare: (query) => (query.get('limit') === '0' ? { ...answer, comparison: { ...answer.comparison, operators: [], kernels: [] } } : answer),
    rules: () => ({ rules: [] }),
    mutes: () => ({ kept: false, can_keep: false, path: null, mutes: { findings: [], rules: [] } }),
    events: () => ({ total: 0, offset: 0, rows: [] }),
    source: () => { throw new Refusal(404, 'No such file.', 'None.'); },
    progress: () => new Response(''),
  });
}

/** Matrix products and a loader, whose first owner is named on one side only. */
const LEDGER: NonNullable<Comparison['ledger']> = {
  base_step_ns: 100e6, candidate_step_ns: 80.1e6,
  entries: [
    { id: 'data_loading', title: 'The step waits for data', label: 'Data loading', cause: 'data_loading', kind: null, base_ns: 40e6, candidate_ns: 20e6, owners: [{ name: 'fetch', base_ns: 35e6, candidate_ns: null }, { name: 'DataLoader', base_ns: 30e6, candidate_ns: 10e6 }] },
    { id: 'compute:matrix', title: 'Device: matrix products', label: 'Matrix products', cause: 'compute', kind: 'matrix', base_ns: 59.5e6, candidate_ns: 59.6e6, owners: [{ name: 'aten::mm', base_ns: 50e6, candidate_ns: 50.1e6, known_by: 'exact' }] },
    { id: 'launch_pace', title: 'The host launches', label: 'Launch overhead', cause: 'launch_pace', kind: null, base_ns: 3e5, candidate_ns: 2e5, owners: [] },
    { id: 'compute:pointwise', title: 'Device: pointwise operators', label: 'Pointwise operators', cause: 'compute', kind: 'pointwise', base_ns: 2e5, candidate_ns: 3e5, owners: [] },
  ],
};

const LINK = 'torchtidy&p.torchtidy.view=compare&p.torchtidy.cmp=before&p.torchtidy.with=after';

async function open(changes: Partial<Comparison> = {}, hash = LINK, runs: Runs = TWO): Promise<TestServer> {
  const server = serveRuns(compareAnswer(changes), runs);
  await openPage(hash);
  await screen.findByRole('heading', { level: 1, name: 'Compare' });
  return server;
}

const side = async (name: string) => within(await screen.findByRole('region', { name }));
const verdict = () => screen.findByRole('heading', { level: 2, name: /faster|slower|No clear|cannot be compared/ });
const lastAsked = (server: TestServer) =>
  Object.fromEntries(new URLSearchParams(server.asked.findLast((each) => each.startsWith('compare'))?.split('?')[1]));
const address = (name: string): string | null => new URLSearchParams(window.location.hash.slice(1)).get(`p.torchtidy.${name}`);

describe('the sides', () => {
  it('are the two newest runs, and the address names them', async () => {
    const server = await open({}, 'torchtidy&p.torchtidy.view=compare', { older: [{ span: '1695242331722' }], ...TWO });
    await verdict();
    expect(lastAsked(server)).toEqual({ base: 'before', candidate: 'after', limit: '0' });
    expect([address('cmp'), address('with')]).toEqual(['before', 'after']);
  });

  it('are the run that was looked at and the next one, if it is the oldest', async () => {
    const server = serveRuns(compareAnswer());
    await openPage('torchtidy&p.torchtidy.run=before');
    fireEvent.click(await screen.findByRole('tab', { name: 'Compare' }));
    await verdict();
    expect(lastAsked(server)).toMatchObject({ base: 'before', candidate: 'after' });
  });

  it('are reached by a key, and need no report of the selected run', async () => {
    const server = serveRuns(compareAnswer(), { broken: [{ state: 'error', problem: { path: 'x', error: 'No JSON.', advice: 'Record.', recovered_events: 0 } }], ...TWO });
    await openPage('torchtidy&p.torchtidy.run=broken');
    await screen.findByRole('heading', { name: 'This trace could not be read' });
    await effects();
    key('c', document.body);
    await verdict();
    expect(lastAsked(server)).toMatchObject({ base: 'before', candidate: 'after' });
  });

  it('are what the link says', async () => {
    const server = await open({}, `${LINK}&p.torchtidy.steps=3-4&p.torchtidy.with_rank=host_1&p.torchtidy.with_span=1795242346135&p.torchtidy.with_steps=5`);
    await verdict();
    expect(lastAsked(server)).toEqual({
      base: 'before', base_steps: '3-4', candidate: 'after', candidate_rank: 'host_1', candidate_span: '1795242346135', candidate_steps: '5', limit: '0',
    });
    const chosen = (await side('Baseline')).getAllByRole('option', { selected: true }).map((option) => option.textContent);
    expect(chosen.filter((text) => text?.startsWith('Profiler'))).toEqual(['ProfilerStep#3: 100 ms3', 'ProfilerStep#4: 100 ms4']);
  });

  it('are swapped with all that was chosen', async () => {
    const server = await open({}, `${LINK}&p.torchtidy.steps=3-4`);
    await verdict();
    fireEvent.click(screen.getByRole('button', { name: 'Swap baseline and candidate' }));
    await vi.waitFor(() => expect(lastAsked(server)).toEqual({ base: 'after', candidate: 'before', candidate_steps: '3-4', limit: '0' }));
    window.history.back();
    await vi.waitFor(() => expect(address('cmp')).toBe('before'));
    expect(await (await side('Baseline')).findByDisplayValue('3-4')).toBeTruthy();
  });

  it('are chosen by run and rank, where there is a choice', async () => {
    const server = await open({}, LINK, { ...TWO, wide: [{ worker: 'rank0' }, { worker: 'rank1' }] });
    const base = await side('Baseline');
    expect(base.queryByLabelText('Rank')).toBeNull();
    fireEvent.change(base.getByLabelText('Run'), { target: { value: 'wide' } });
    fireEvent.change(await base.findByLabelText('Rank'), { target: { value: 'rank1' } });
    await vi.waitFor(() => expect(lastAsked(server)).toEqual({ base: 'wide', base_rank: 'rank1', candidate: 'after', limit: '0' }));
  });

  it('are not asked about where they are the same', async () => {
    const server = await open({}, 'torchtidy&p.torchtidy.view=compare', { alone: [{}] });
    expect(await screen.findByText(/Both sides are the same/)).toBeTruthy();
    expect(server.asked.filter((each) => each.startsWith('compare'))).toEqual([]);
  });
});

describe('steps', () => {
  const strip = async (name: string) => (await side(name)).findByRole('listbox', { name: /Steps/ });
  const step = async (name: string, number: number) => within(await strip(name)).getByRole('option', { name: new RegExp(`ProfilerStep#${number}:`) });

  it('are chosen in the strip by a click and by Shift with a click', async () => {
    const server = await open();
    fireEvent.click(await step('Candidate', 4));
    fireEvent.click(await step('Candidate', 6), { shiftKey: true });
    await vi.waitFor(() => expect(lastAsked(server)).toMatchObject({ candidate_steps: '4-6' }));
    await vi.waitFor(() => expect(address('with_steps')).toBe('4-6'));
  });

  it('are chosen by dragging, and asked for once it ends', async () => {
    const server = await open();
    await verdict();
    fireEvent.pointerDown(await step('Baseline', 5), { button: 0 });
    await vi.waitFor(async () => { fireEvent.pointerEnter(await step('Baseline', 3)); expect((await step('Baseline', 4)).getAttribute('aria-selected')).toBe('true'); });
    expect(address('steps')).toBeNull();
    fireEvent.pointerUp(window);
    await vi.waitFor(() => expect(lastAsked(server)).toMatchObject({ base_steps: '3-5' }));
  });

  it('are chosen by arrows, by Shift with arrows, and all of them by Esc', async () => {
    const server = await open();
    await verdict();
    const list = await strip('Candidate');
    key('ArrowRight', list);
    await vi.waitFor(async () => expect((await step('Candidate', 3)).getAttribute('aria-selected')).toBe('true'));
    for (let times = 0; times < 2; times += 1) list.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight', shiftKey: true, bubbles: true, cancelable: true }));
    await vi.waitFor(() => expect(lastAsked(server)).toMatchObject({ candidate_steps: '3-5' }));
    key('Escape', list);
    await vi.waitFor(() => expect(address('with_steps')).toBeNull());
    expect(server.asked.filter((each) => each.includes('candidate_steps=3&')).length).toBe(0); // only settled values were requested
  });

  it('say why they are outliers, as far as they are chosen', async () => {
    await open();
    const said = async (name: string) => (await side(name)).queryByText(/waited for/)?.textContent;
    await vi.waitFor(async () => expect([await said('Baseline'), await said('Candidate')]).toEqual(['▲ Step 5 waited for data.', '▲ Step 5 waited for data.']));
    fireEvent.click(await step('Candidate', 4));
    await vi.waitFor(async () => expect([await said('Baseline'), await said('Candidate')]).toEqual(['▲ Step 5 waited for data.', undefined]));
    await vi.waitFor(() => expect(address('with_steps')).toBe('4')); // once it has settled; otherwise it would be in the next test
  });

  it('are typed as a range, and what is none is said and not asked', async () => {
    const server = await open();
    await verdict();
    const field = (await side('Candidate')).getByLabelText<HTMLInputElement>('Steps');
    fireEvent.input(field, { target: { value: '3-99x' } });
    expect(await screen.findByText('Write 3-7 for the steps 3 to 7, or 5 for one step.')).toBeTruthy();
    key('Enter', field);
    expect(address('with_steps')).toBeNull();
    fireEvent.input(field, { target: { value: '9' } });
    expect(await screen.findByText('There are the steps 3-6.')).toBeTruthy();
    fireEvent.input(field, { target: { value: '5' } });
    await vi.waitFor(() => expect(screen.queryByText('There are the steps 3-6.')).toBeNull());
    field.focus();
    key('Enter', field);
    await vi.waitFor(() => expect(lastAsked(server)).toMatchObject({ candidate_steps: '5' }));
    expect(document.activeElement).toBe(field);
    fireEvent.click(await (await side('Candidate')).findByRole('button', { name: 'All steps' }));
    await vi.waitFor(() => expect(address('with_steps')).toBeNull());
  });
});

describe('what came of it', () => {
  const text = async () => (await screen.findByRole('main')).textContent ?? '';

  it('is a sentence, said to screen readers too, after what makes it doubtful', async () => {
    await open({ notes: ['Different device: `A100` against `H100`.'] });
    expect((await verdict()).textContent).toContain('Candidate is 1.25× faster (1.18–1.33): 100 → 80 ms per step');
    const shown = await text();
    expect(shown.indexOf('Different device: A100 against H100.')).toBeGreaterThan(0);
    expect(shown.indexOf('Different device')).toBeLessThan(shown.indexOf('1.25× faster'));
    await vi.waitFor(() => expect(document.querySelector('[aria-live=polite]')?.textContent).toContain('1.25× faster'));
  });

  it('says that no difference is clear as plainly as faster', async () => {
    await open({ verdict: 'no_clear_difference', step_ratio: { value: 0.99, low: 0.9, high: 1.1 } });
    expect((await verdict()).textContent).toContain('No clear difference: 100 → 80 ms per step');
    expect(await text()).toContain('No findings on either side.');
  });

  it('says why steps are slower', async () => {
    await open({
      verdict: 'slower', step_ratio: { value: 1.5, low: 1.4, high: 1.6 }, candidate: { ...compareAnswer().comparison.candidate, median_ns: 150e6 }, realised_ns: -50e6, predicted_ns: 0,
      ledger: { base_step_ns: 100e6, candidate_step_ns: 150e6, entries: [{ id: 'data_loading', title: 'The step waits for data', label: 'Data loading', cause: 'data_loading', kind: null, base_ns: 1e6, candidate_ns: 41e6, owners: [] }] },
      findings: [change('small', { state: 'worse', candidate_ns: 6e6 }), change('large', { state: 'new', base_ns: null, candidate_ns: 40e6, predicted_ns: null, realised_ns: null })],
    });
    expect((await verdict()).textContent).toContain('Candidate is 1.50× slower (1.40–1.60): 100 → 150 ms per step');
    for (const part of ['Most of it: Data loading 1 → 41 ms.', 'The largest new finding: Finding large (+40 ms).', '2 findings: 1 new, 1 worse.']) expect(await text()).toContain(part);
    expect(screen.queryByRole('region', { name: 'Promised and kept' })).toBeNull();
  });

  it('sets what was promised beside what was kept, in all and for each finding', async () => {
    await open({
      predicted_ns: 15_600_000, realised_ns: 16_200_000,
      findings: [change('a', { predicted_ns: 15_000_000, realised_ns: 15_577_000 }), change('b', { state: 'better', predicted_ns: 600_000, realised_ns: 623_000, candidate_ns: 1 }), change('c', { state: 'same' })],
    });
    const section = await screen.findByRole('region', { name: 'Promised and kept' });
    expect(section.textContent).toContain('promised 15.6 ms, kept 16.2 ms per step');
    expect(within(section).getAllByRole('listitem').map((item) => item.textContent)).toEqual([
      'All togetherpromised15.6 mskept16.2 ms', 'Finding apromised15.0 mskept15.6 ms', 'Finding bpromised600 µskept623 µs',
    ]);
    fireEvent.click(within(section).getByRole('button', { name: 'Show as table' }));
    expect((await within(section).findAllByRole('row')).map((row) => row.textContent).slice(1)).toEqual([
      'All together15.6 ms16.2 ms+600 µs', 'Finding a15.0 ms15.6 ms+577 µs', 'Finding b600 µs623 µs+23.0 µs',
    ]);
  });

  it('says that less than nothing was kept where steps became longer', async () => {
    await open({ findings: [change('a', { realised_ns: -2_000_000 })], realised_ns: -2_000_000 });
    expect((await screen.findByRole('region', { name: 'Promised and kept' })).textContent).toContain('promised 4 ms, kept −2 ms per step');
  });

  it('has no parts where a ledger does not have the chosen steps, which a note says', async () => {
    await open({ notes: ['The ledger takes its steps from other marks.'], ledger: null });
    await verdict();
    expect(await text()).toContain('The ledger takes its steps from other marks.');
    expect(screen.queryByRole('region', { name: 'Parts of the step' })).toBeNull();
  });

  it('has the entries of both ledgers with the whole step, and whose they are', async () => {
    await open({ ledger: LEDGER });
    const section = await screen.findByRole('region', { name: 'Parts of the step' });
    expect(within(section).getAllByRole('listitem').map((item) => [item.textContent, item.title])).toEqual([
      ['Data loading▼ −20.0 ms less40 → 20 ms', 'The step waits for data: DataLoader 30 → 10 ms'],
      ['Matrix products▲ +100 µs more59.5 → 59.6 ms', 'Device: matrix products: aten::mm (replayed: exact) 50 → 50.1 ms'],
      ['2 smaller entries= 0 ns the same500 → 500 µs', 'Launch overhead, Pointwise operators'],
      ['All parts▼ −19.9 ms less100 → 80.1 ms', ''],
    ]);
    fireEvent.click(within(section).getByRole('button', { name: 'Show as table' }));
    expect((await within(section).findAllByRole('row')).map((row) => row.textContent).slice(1, 3)).toEqual([
      'The step waits for dataDataLoader 30 → 10 ms40.0 ms20.0 ms−20.0 ms−50 %', 'Device: matrix productsaten::mm (replayed: exact) 50 → 50.1 ms59.5 ms59.6 ms+100 µs0 %',
    ]);
    expect((await within(section).findAllByRole('row'))).toHaveLength(5);
  });

  it('shows the steps of the ledger, as Overview does, and not their marks', async () => {
    const account = ledger([ledgerEntry('compute', 'matrix', [188e6, 175e6, 310e6, 175e6])]);
    serveRuns(compareAnswer(), TWO, { ...account, steps: account.steps.map((step, at) => ({ ...step, name: `ProfilerStep#${at + 3}` })) });
    await openPage(LINK);
    const strip = await (await side('Baseline')).findByRole('listbox', { name: 'Steps of the baseline' });
    const options = within(strip).getAllByRole('option');
    expect(options.map(({ title }) => title)).toEqual(['ProfilerStep#3: 188 ms', 'ProfilerStep#4: 175 ms', 'ProfilerStep#5: 310 ms, outlier', 'ProfilerStep#6: 175 ms']);
    expect(options[0]?.querySelector('.part-blue')).toBeTruthy();
  });

  it('says when the work changed, and how long a unit of it takes', async () => {
    await open({
      verdict: 'different_work', step_ratio: { value: 7.43, low: 7, high: 8 }, realised_ns: null,
      work: { kind: 'rows', text: 'the rows of products (samples or tokens) ×8', operations: 8, unit: 'row', units: 8, time_per_unit: { value: 0.929, low: 0.875, high: 1 } },
    });
    expect((await screen.findByRole('heading', { level: 2, name: /Different work per step/ })).textContent).not.toContain('slower');
    expect(await text()).toContain('The work per step changed: the rows of products (samples or tokens) ×8; operations ×8.00. Time per row: ×0.93 (0.88–1.00).');
  });

  it('prints no interval that says nothing', async () => {
    await open({ verdict: 'no_clear_difference', step_ratio: { value: 0.476, low: 0.0005, high: 476 } });
    await verdict();
    expect(await text()).not.toMatch(/476 times|0\.0005/);
  });

  it.each([
    [{ profiles: 3 }, '3 recordings'],
    [{ profiles: 8, ranks: 4 }, '4 ranks, 8 recordings'],
    [{ profiles: 4, ranks: 4 }, '4 ranks'],
    [{ profiles: 3, runs: ['a', 'b', 'c'] }, '3 runs'],
    [{ profiles: 6, runs: ['a', 'b', 'c'], ranks: 2 }, '3 runs, 2 ranks at most, 6 recordings'],
  ])('tells runs, ranks and recordings apart: %o', async (changes, words) => {
    await open({ base: { ...compareAnswer().comparison.base, ...changes } });
    await verdict();
    expect(screen.getByText(`median 100 ms of 10 steps, ${words}`)).toBeTruthy();
  });

  it('has the host’s pace where it is another one than the step’s, and says which steps warm up', async () => {
    const { base, candidate } = compareAnswer().comparison;
    await open({ base: { ...base, host_median_ns: 70e6, warming_up: 2 }, candidate: { ...candidate, host_median_ns: 80.1e6 } });
    await verdict();
    expect(await text()).toContain('median 100 ms of 10 steps, 2 of them warm-up; the host’s own mark takes 70 ms');
    expect(await text()).not.toContain('80.1 ms');
  });
});

describe('the findings', () => {
  const BOTH = [
    change('same', { state: 'same', candidate_ns: 5_100_000 }), change('gone'), change('new', { state: 'new', base_ns: null, candidate_ns: 7_000_000 }),
    change('worse', { state: 'worse', candidate_ns: 9_000_000 }), change('better', { state: 'better', candidate_ns: 1_000_000 }),
  ];

  it('are listed by state, with sign, word and times', async () => {
    await open({ findings: BOTH });
    const rows = within(await screen.findByRole('region', { name: 'Findings by state' })).getAllByRole('row').map((row) => row.textContent);
    expect(rows).toEqual([
      'FindingBaselineCandidateDifference',
      '+ New 1 finding, only in the candidate', 'Severity: mediumFinding newtrain.py:42 in train_step–7.00 ms▲ +7.00 ms',
      '↑ Worse 1 finding, at a higher cost than before', 'Severity: mediumFinding worsetrain.py:42 in train_step5.00 ms9.00 ms▲ +4.00 ms',
      '✓ Gone 1 finding, only in the baseline', 'Severity: mediumFinding gonetrain.py:42 in train_step5.00 ms–▼ −5.00 ms',
      '↓ Better 1 finding, at a lower cost than before', 'Severity: mediumFinding bettertrain.py:42 in train_step5.00 ms1.00 ms▼ −4.00 ms',
      '= Same 1 finding, at about the same cost', 'Severity: mediumFinding sametrain.py:42 in train_step5.00 ms5.10 ms▲ +100 µs',
    ]);
    const tones = (await screen.findAllByRole('cell')).flatMap((cell) => (cell.classList.contains('way') ? [cell.className.split(' ').at(-1)] : []));
    expect(tones).toEqual(['bad', 'bad', 'good', 'good', 'even']);
  });

  it('are named by what to do, since the figures of a diagnosis are those of all steps', async () => {
    await open({ findings: BOTH.slice(0, 1).map((each) => ({ ...each, action: 'Load batches in `workers`' })) });
    const region = within(await screen.findByRole('region', { name: 'Findings by state' }));
    expect(region.getByText('Load batches in', { exact: false }).textContent).toBe('Load batches in workers');
    expect(region.queryByText(/^Finding \w+$/u)).toBeNull();
  });

  it('open in the run that has them, and Back leads to the comparison', async () => {
    const runs = { before: [{ worker: 'rank0' }, { worker: 'rank1', span: '2' }], after: [{}] };
    await open({ findings: [change('a', { worker: 'rank1', span: '2' }), change('b', { state: 'new', base_ns: null, candidate_ns: 1 })] }, LINK, runs);
    fireEvent.click(await screen.findByRole('button', { name: /Finding a/ }));
    expect(await screen.findByRole('heading', { level: 1, name: 'Finding a' })).toBeTruthy();
    expect(['run', 'worker', 'span', 'finding', 'cmp'].map(address)).toEqual(['before', 'rank1', '2', 'a', null]);
    window.history.back();
    fireEvent.click(await screen.findByRole('button', { name: /Finding b/ }));
    await vi.waitFor(() => expect([address('run'), address('finding')]).toEqual(['after', 'b']));
  });

  it('lead to their lines in the run that has them', async () => {
    await open({ findings: [change('a', { places: [place({ file: '/job/model.py', line: 7, function: 'forward' })] })] });
    fireEvent.click(await screen.findByRole('button', { name: 'model.py:7 in forward' }));
    await vi.waitFor(() => expect([address('view'), address('run'), address('file'), address('line')]).toEqual(['source', 'before', '/job/model.py', '7']));
  });
});

describe('operators and kernels', () => {
  const OPERATORS = [operatorChange('aten::mm'), operatorChange('aten::add', { candidate_calls: 4, candidate_ns: 3_500_000 })];

  it('are rows with both sides, and searched by the server once typing pauses', async () => {
    const server = await open({ operators: OPERATORS });
    const cells = async () => (await screen.findAllByRole('row')).map((row) => within(row).queryAllByRole('cell').map((cell) => cell.textContent)).filter((row) => row.length === 6);
    await vi.waitFor(async () => expect(await cells()).toEqual([
      ['aten::mm', '64×64 · float32', '4 → 0', '3.00 ms', '0 ns', '▼ −3.00 ms'], ['aten::add', '64×64 · float32', '4', '3.00 ms', '3.50 ms', '▲ +500 µs'],
    ]));
    expect(lastAsked(server)).toMatchObject({ offset: '0', limit: '100' });
    fireEvent.input(screen.getByRole('searchbox', { name: 'Search operators and kernels' }), { target: { value: ' add' } });
    await vi.waitFor(() => expect(lastAsked(server)).toMatchObject({ q: 'add' }));
    expect(screen.queryByRole('group', { name: 'Show' })).toBeNull(); // there are no kernels
  });

  it('are one or the other, where there are kernels', async () => {
    await open({ operators: OPERATORS, kernels: [{ name: 'gemm', shapes: '', base_calls: 1, candidate_calls: 1, base_ns: 1000, candidate_ns: 4000 }] });
    fireEvent.click(await screen.findByRole('button', { name: 'Kernels' }));
    const table = await screen.findByRole('table', { name: 'Kernels' });
    await vi.waitFor(() => expect(within(table).getAllByRole('cell').map((cell) => cell.textContent)).toEqual(['gemm', '–', '1', '1.00 µs', '4.00 µs', '▲ +3.00 µs']));
  });

  it('say that nothing matches', async () => {
    const server = await open({ operators: OPERATORS });
    await screen.findByRole('table', { name: 'Operators' });
    const all = server.answers['compare'];
    server.answers['compare'] = (query, posted) => (query.get('q') ? { ...compareAnswer(), operators: 0 } : all?.(query, posted));
    fireEvent.input(screen.getByRole('searchbox', { name: 'Search operators and kernels' }), { target: { value: 'zzz' } });
    expect(await screen.findByText('Nothing matches the search.')).toBeTruthy();
  });
});

describe('until it is there', () => {
  it('shows how far the analyses are, and no older comparison', async () => {
    const runs: Runs = { ...TWO, third: [{ span: '1595242331722', state: 'reading', fraction: 0.5, stage: 'Reading 12 of 35 MB' }] };
    const server = await open({}, LINK, runs);
    await verdict();
    const done = server.answers['compare'];
    server.answers['compare'] = () => { throw new Refusal(202, 'The trace is still being analysed.', 'Ask again in a moment.'); };
    fireEvent.change((await side('Baseline')).getByLabelText('Run'), { target: { value: 'third' } });
    const bar = await screen.findByRole('progressbar', { name: 'Comparing' });
    expect(bar.getAttribute('aria-valuenow')).toBe('75');
    expect(screen.getByText(/1 of 2 recordings are analysed\. Reading 12 of 35 MB/)).toBeTruthy();
    expect(screen.queryByRole('heading', { level: 2, name: /faster/ })).toBeNull();
    if (done) server.answers['compare'] = done;
    await vi.waitFor(async () => expect((await verdict()).textContent).toContain('faster'));
  });

  it('says in the words of the server what went wrong, and asks again', async () => {
    const server = serveRuns(compareAnswer());
    const fine = server.answers['compare'];
    server.answers['compare'] = () => { throw new Refusal(404, 'There is no run `gone` in the logdir.', 'Reload the list of runs.'); };
    await openPage(LINK.replace('with=after', 'with=gone'));
    expect((await screen.findByRole('alert')).textContent).toContain('There is no run gone in the logdir. Reload the list of runs.');
    expect((await side('Candidate')).getByLabelText<HTMLSelectElement>('Run').value).toBe('gone');
    if (fine) server.answers['compare'] = fine;
    fireEvent.click(screen.getByRole('button', { name: 'Try again' }));
    await verdict();
  });

  it('keeps what it shows when a newer recording is found, and offers to compare again', async () => {
    const runs: Runs = { before: [{ span: '1', version: 1 }], after: [{ span: '2', version: 1 }] };
    const server = await open({}, LINK, runs);
    await verdict();
    runs['after'] = [{ span: '2', version: 2, state: 'queued' }];
    server.answers['compare'] = () => compareAnswer({ step_ratio: { value: 0.5, low: 0.4, high: 0.6 } });
    const { revalidate } = await import('../state/actions');
    await revalidate();
    const again = await screen.findByRole('button', { name: 'Compare again' });
    expect((await verdict()).textContent).toContain('1.25× faster');
    fireEvent.click(again);
    await vi.waitFor(async () => expect((await verdict()).textContent).toContain('2.00× faster'));
  });

  it('keeps what it shows when the server is gone', async () => {
    const server = await open();
    await verdict();
    server.down = true;
    const { revalidate } = await import('../state/actions');
    await revalidate();
    expect((await screen.findByRole('alert')).textContent).toContain('The server does not answer');
    expect((await verdict()).textContent).toContain('1.25× faster');
  });
});

it('shows both recordings as one flame graph, with the difference of each path', async () => {
  vi.stubGlobal('ResizeObserver', class { observe() {} unobserve() {} disconnect() {} });
  const server = serveRuns(compareAnswer());
  server.answers['flame'] = (query) => flame(query.get('run') === 'after' ? { account_ns: [0, 0, 0, 20, 30, 12] } : {});
  await openPage('torchtidy&p.torchtidy.view=compare&p.torchtidy.cmp=before&p.torchtidy.with=after');
  const section = await screen.findByRole('region', { name: 'Flame graph of the difference' });
  expect(server.asked.some((each) => each.startsWith('flame'))).toBe(false);
  fireEvent.click(within(section).getByRole('button', { name: 'Show' }));
  const table = await within(section).findByRole('region', { name: 'Parts of All' });
  expect(within(table).getAllByRole('row').slice(1).map((row) => [...row.children].map((cell) => cell.textContent))).toEqual([
    ['step', 'function', '45 ns', '25 ns', '▼ −20 ns less'], ['The host is late', 'idle time', '5 ns', '6 ns', '▲ +1 ns more'],
  ]);
});
