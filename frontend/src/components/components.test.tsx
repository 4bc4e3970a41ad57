import { cleanup, fireEvent, render, screen } from '@testing-library/preact';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { plainLines } from '../base/tokens';
import { CopyButton } from './Button';
import { chunk, fetchWhenIdle } from './chunk';
import { Code } from './Code';
import { Later } from './Later';
import { Markdown } from './Markdown';
import { ProgressBar } from './Progress';
import { Select } from './Select';
import { SeverityGlyph } from './Severity';
import { Message } from './Spans';
import { Splitter } from './Splitter';
import { StackedBar } from './StackedBar';
import { Tabs } from './Tabs';
import { VirtualRows } from './VirtualRows';

afterEach(cleanup);

describe('text from traces', () => {
  it('is text, whatever it looks like', () => {
    const { container } = render(<Message text="<img src=x onerror=alert(1)> in `<b>code</b>`" />);
    expect(container.querySelector('img, b')).toBeNull();
    expect(container.querySelector('code')?.textContent).toBe('<b>code</b>');
  });

  it('is text in pages as well', () => {
    const { container } = render(<Markdown text={'<script>x</script>\n\n- `a`\n\n```\n<i>\n```'} />);
    expect(container.querySelector('script, i')).toBeNull();
    expect(container.querySelectorAll('li code').length).toBe(1);
  });
});

describe('code', () => {
  const marks = [{ line: 11, endLine: 12, note: '4 ms', current: true }, { line: 14, endLine: 14, note: '1 ms', current: false }];
  const draw = () => render(<Code label="train.py" lines={plainLines(['a', 'b', 'c', 'd', 'e'])} first={10} marks={marks} />);

  it('marks lines by border, sign and word, not by colour alone', () => {
    const { container } = draw();
    const marked = [...container.querySelectorAll('.code-line.marked')];
    expect(marked.map((line) => line.querySelector('.code-number')?.textContent)).toEqual(['11', '12', '14']);
    expect(marked.every((line) => line.querySelector('.code-sign')?.textContent === '▸')).toBe(true);
    expect(marked[0]?.textContent).toContain('Matched line: ');
  });

  it('tells the cost at the first line of a mark', () => {
    const { container } = draw();
    expect([...container.querySelectorAll('.code-note')].map((note) => note.textContent)).toEqual(['', '4 ms', '', '', '1 ms']);
  });

  it('has no numbers where none are given', () => {
    const { container } = render(<Code label="Before" lines={plainLines(['a'])} sign="−" />);
    expect(container.querySelector('.code-number')).toBeNull();
    expect(container.querySelector('.code-sign')?.textContent).toBe('−');
  });
});

it('gives severity a word beside shape and colour', () => {
  render(<SeverityGlyph level="high" />);
  expect(screen.getByRole('img', { name: 'high severity' })).toBeTruthy();
});

it('confirms a copy only when it was made', async () => {
  const copies = [false, true];
  const { container } = render(<CopyButton label="Copy" onCopy={() => Promise.resolve(copies.shift() ?? false)} />);
  const drawn = () => container.querySelector('path')?.getAttribute('d');
  const before = drawn();
  fireEvent.click(screen.getByRole('button'));
  await Promise.resolve();
  expect(drawn()).toBe(before);
  fireEvent.click(screen.getByRole('button'));
  await vi.waitFor(() => expect(drawn()).not.toBe(before));
});

it('tells which option was chosen', () => {
  const chosen: string[] = [];
  render(<Select label="Run" value="a" options={[{ value: 'a', label: 'A' }, { value: 'b', label: 'B' }]} onChange={(value) => chosen.push(value)} />);
  fireEvent.change(screen.getByRole('combobox', { name: 'Run' }), { target: { value: 'b' } });
  expect(chosen).toEqual(['b']);
});

describe('tabs', () => {
  const draw = (chosen: string[], near: string[] = []) => render(
    <Tabs label="View" panel="p" chosen="a" tabs={[{ id: 'a', label: 'A' }, { id: 'b', label: 'B' }]} onChoose={(id) => chosen.push(id)} onNear={(id) => near.push(id)} />,
  );

  it('move by arrows, with one tab stop', () => {
    const chosen: string[] = [];
    draw(chosen);
    expect(screen.getAllByRole('tab').map((tab) => tab.tabIndex)).toEqual([0, -1]);
    fireEvent.keyDown(screen.getByRole('tab', { name: 'A' }), { key: 'ArrowLeft' });
    fireEvent.keyDown(screen.getByRole('tab', { name: 'A' }), { key: 'ArrowRight' });
    expect(chosen).toEqual(['b', 'b']);
  });

  it('mark views that show nothing, and say why', () => {
    render(<Tabs label="View" panel="p" chosen="a" tabs={[{ id: 'a', label: 'A' }, { id: 'b', label: 'B', empty: 'No device' }]} onChoose={() => undefined} onNear={() => undefined} />);
    expect(screen.getAllByRole('tab').map((tab) => [tab.className, tab.title])).toEqual([['tab', ''], ['tab empty', 'No device']]);
  });

  it('say which one the mouse rests on, and none that it passes', async () => {
    const near: string[] = [];
    draw([], near);
    const other = screen.getByRole('tab', { name: 'B' });
    fireEvent.pointerEnter(other);
    fireEvent.pointerLeave(other);
    fireEvent.pointerEnter(screen.getByRole('tab', { name: 'A' })); // it is open
    await new Promise((done) => { setTimeout(done, 200); });
    expect(near).toEqual([]);
    fireEvent.pointerEnter(other);
    await vi.waitFor(() => expect(near).toEqual(['b']));
  });
});

describe('chunks', () => {
  it('are fetched once, and again after a failure', async () => {
    let times = 0;
    const part = chunk(async () => {
      times += 1;
      if (times === 1) throw new Error('gone');
      return { number: times };
    });
    await expect(part.fetch()).rejects.toThrow('gone');
    expect(part.known()).toBeNull();
    const [one, other] = await Promise.all([part.fetch(), part.fetch()]);
    expect([one, other, part.known()]).toEqual([{ number: 2 }, { number: 2 }, { number: 2 }]);
  });

  it('that are there are drawn at once', async () => {
    const view = chunk(async () => ({ View: () => <p>there</p> }));
    await view.fetch();
    render(<Later of={view} />);
    expect(screen.getByText('there')).toBeTruthy();
  });

  it('are all fetched when nothing else is to do, whatever becomes of one', async () => {
    vi.stubGlobal('requestIdleCallback', (done: () => void) => setTimeout(done));
    const missing = chunk(() => Promise.reject(new Error('gone')));
    const other = chunk(async () => ({ name: 'other' }));
    await fetchWhenIdle([missing, other]);
    expect(other.known()).toEqual({ name: 'other' });
  });
});

it('moves the line between panes by arrows', () => {
  const widths: number[] = [];
  render(<Splitter label="Width" width={380} least={280} most={560} onWidth={(width) => widths.push(width)} />);
  const line = screen.getByRole('separator', { name: 'Width' });
  fireEvent.keyDown(line, { key: 'ArrowRight' });
  fireEvent.keyDown(line, { key: 'ArrowLeft' });
  fireEvent.keyDown(line, { key: 'x' });
  expect(widths).toEqual([396, 364]);
});

it('names the parts of a bar in words', () => {
  render(<StackedBar label="Time" parts={[{ colour: 'grey', label: 'Idle', share: 0.25, text: '25 %' }]} />);
  expect(screen.getByRole('listitem').textContent).toBe('Idle 25 %');
});

it('tells progress to screen readers', () => {
  render(<ProgressBar label="Reading" fraction={0.345} />);
  expect(screen.getByRole('progressbar', { name: 'Reading' }).getAttribute('aria-valuenow')).toBe('35');
});

it('draws only the rows in sight of many', async () => {
  vi.spyOn(HTMLElement.prototype, 'clientHeight', 'get').mockReturnValue(200);
  vi.spyOn(HTMLElement.prototype, 'clientWidth', 'get').mockReturnValue(400);
  const ranges: [number, number][] = [];
  const onRange = (first: number, last: number): void => void ranges.push([first, last]);
  render(<VirtualRows class="x" label="Rows" count={100_000} rowHeight={20} onRange={onRange} row={(index) => <p>row {index}</p>} />);
  await screen.findByText('row 0');
  expect(screen.getAllByText(/^row/).length).toBeLessThan(60);
  expect(ranges.at(-1)?.[0]).toBe(0);
});
