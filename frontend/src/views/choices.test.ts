import { fireEvent, screen, within } from '@testing-library/preact';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { finding, place, report, rule, saving, state } from '../testing/fixtures';
import { key, openPage, rows } from '../testing/page';
import { Refusal, serveProfile } from '../testing/server';

const LIBRARY = place({ own_code: false, file: '/site-packages/torch/optim/adam.py' });
const FINDINGS = [
  finding('first', { rule: 'one', message: 'First', saving: saving(9e6) }),
  finding('second', { rule: 'two', message: 'Second', saving: saving(6e6), places: [LIBRARY] }),
  finding('third', { rule: 'one', message: 'Third', saving: saving(3e6) }),
];
const titles = async () => (await rows()).map((row) => row.querySelector('.row-title')?.textContent);

const open = async (hash = '') => {
  const server = serveProfile(report({ findings: FINDINGS }), state(), [rule('one'), rule('two')]);
  const body = await openPage(hash);
  await rows();
  return { server, body };
};

afterEach(() => localStorage.clear());

describe('the list', () => {
  it('is cut into groups, which the address names and the arrows cross', async () => {
    await open();
    fireEvent.change(screen.getByRole('combobox', { name: 'Groups' }), { target: { value: 'check' } });
    await vi.waitFor(async () => expect(await titles()).toEqual(['First', 'Third', 'Second']));
    expect(screen.getAllByRole('group', { name: /^Title of/ }).map((group) => group.getAttribute('aria-label'))).toEqual(['Title of one', 'Title of two']);
    expect(window.location.hash).toContain('group=check');
    key('j');
    key('j');
    await vi.waitFor(() => expect(screen.getByRole('heading', { level: 1 }).textContent).toBe('Second'));
    await vi.waitFor(() => expect(window.location.hash).toContain('finding=second')); // settled
  });

  it('leaves out what is in installed packages, on request', async () => {
    await open();
    fireEvent.click(screen.getByRole('checkbox', { name: 'Only my code' }));
    await vi.waitFor(async () => expect(await titles()).toEqual(['First', 'Third']));
    expect(screen.getByText('2 of 3 findings')).toBeTruthy();
    expect(window.location.hash).toContain('own=1');
  });

  it('does not offer to where all findings are the user’s own', async () => {
    serveProfile(report({ findings: FINDINGS.filter(({ id }) => id !== 'second') }), state());
    await openPage();
    await rows();
    expect(screen.queryByRole('checkbox', { name: 'Only my code' })).toBeNull();
  });

  it('says why nothing is left, and takes all filters back', async () => {
    serveProfile(report({ findings: [finding('a', { places: [LIBRARY] }), finding('b', { places: [] })] }), state());
    await openPage('torchtidy&p.torchtidy.own=1');
    expect(await screen.findByText('No finding is in your own code.')).toBeTruthy();
    fireEvent.click(screen.getByRole('button', { name: 'Clear the filter' }));
    await vi.waitFor(async () => expect((await rows()).length).toBe(2));
  });
});

describe('settings', () => {
  it('give all savings a unit, and the list less room', async () => {
    const { body } = await open();
    fireEvent.click(screen.getByRole('button', { name: 'Settings' }));
    const dialog = within(await screen.findByRole('dialog', { name: 'Settings' }));
    fireEvent.click(dialog.getByRole('radio', { name: 'µs' }));
    fireEvent.click(dialog.getByRole('radio', { name: 'close together' }));
    await vi.waitFor(async () => expect((await rows())[0]?.textContent).toContain('9000 µs/step'));
    expect(body.querySelector('.app')?.getAttribute('data-rows')).toBe('close');
  });

  it('keep keys for themselves while they are open', async () => {
    await open();
    fireEvent.click(screen.getByRole('button', { name: 'Settings' }));
    key('c');
    expect(window.location.hash).not.toContain('compare');
  });
});

/** A browser opens a popover by its button; here the event is sent by hand. */
function unfold(name: string | RegExp): HTMLElement {
  const [panel] = screen.getAllByRole('group', { name, hidden: true });
  if (!panel) throw new Error('no such popover');
  panel.hidePopover = vi.fn<() => void>();
  fireEvent(panel, Object.assign(new Event('toggle'), { newState: 'open' }));
  return panel;
}

describe('how a figure is found', () => {
  it('is told beside the figure, with its inputs', async () => {
    await open();
    unfold('How “Costs” is found');
    expect(await screen.findByText('5 ms ÷ 100 ms (the recorded step) = 5 %')).toBeTruthy();
    unfold('How “Fix saves about” is found');
    expect(await screen.findByText(/^4.5 ms at least, 13.5 ms at most/)).toBeTruthy();
    unfold('How “Step time” is found');
    expect(await screen.findByText(/^The median of 3 steps/)).toBeTruthy();
  });
});

describe('export', () => {
  const saved = async (label: string): Promise<{ name: string; text: string }> => {
    let [name, blob] = ['', new Blob()];
    vi.spyOn(URL, 'createObjectURL').mockImplementation((given) => { blob = given instanceof Blob ? given : blob; return 'blob:x'; });
    vi.spyOn(HTMLAnchorElement.prototype, 'click').mockImplementation(function click(this: HTMLAnchorElement) { name = this.download; });
    unfold('Export');
    fireEvent.click(await screen.findByRole('button', { name: label, hidden: true }));
    await vi.waitFor(() => expect(name).not.toBe(''));
    return { name, text: await blob.text() };
  };

  it('makes a page of the report, without what is muted', async () => {
    localStorage.setItem('torchtidy.mutes', JSON.stringify({ findings: ['second'], rules: [] }));
    const { server } = await open();
    server.answers['export'] = () => ({ html: '<!DOCTYPE html><p>Report</p>' });
    const { name, text } = await saved('Download as a page (HTML)');
    expect(name).toBe('torchtidy-job-host_1.html');
    expect(text).toBe('<!DOCTYPE html><p>Report</p>');
    expect(server.asked).toContain('export?run=job&worker=host_1&span=1&muted=second'); // other requests may come after it
  });

  it('says why there is none', async () => {
    const { server } = await open();
    server.answers['export'] = () => { throw new Refusal(500, 'Disk on fire.', 'Run.'); };
    unfold('Export');
    fireEvent.click(await screen.findByRole('button', { name: 'Download as a page (HTML)', hidden: true }));
    expect(await screen.findByText('The page could not be made. Disk on fire.')).toBeTruthy();
  });

  it('gives the report as JSON', async () => {
    await open();
    const { name, text } = await saved('Download as JSON');
    expect(name).toBe('torchtidy-job-host_1.json');
    expect(JSON.parse(text).findings.length).toBe(3);
  });
});
