/** Line icons on a 16 px grid; decoration only, the text beside them or the button's label gives their meaning. */

const PATHS = {
  back: 'M10 3 5 8l5 5',
  check: 'm3 8.5 3.2 3L13 4.5',
  close: 'm4 4 8 8m0-8-8 8',
  copy: 'M5.5 5.5V3h7.5v7.5h-2.5M3 5.5h7.5V13H3z',
  download: 'M8 2.5v7.5m-3.2-3L8 10l3.2-3M3 13h10',
  file: 'M4 2h5l3 3v9H4zM9 2v3h3',
  link: 'M6.7 9.3a2.6 2.6 0 0 0 3.7 0l2-2a2.6 2.6 0 0 0-3.7-3.7l-.7.7m1.3 2.4a2.6 2.6 0 0 0-3.7 0l-2 2a2.6 2.6 0 0 0 3.7 3.7l.7-.7',
  open: 'M6.5 3.5H3v9.5h9.5V9.5M9 2.5h4.5V7M13.2 2.8 7.5 8.5',
  mute: 'M1.5 8S4 3.5 8 3.5 14.5 8 14.5 8 12 12.5 8 12.5 1.5 8 1.5 8zM2.5 13.5l11-11',
  settings: 'M2 4.5h7m4 0h1M2 11.5h1m4 0h7M11 6.3a1.8 1.8 0 1 0 0-3.6 1.8 1.8 0 0 0 0 3.6zM5 13.3a1.8 1.8 0 1 0 0-3.6 1.8 1.8 0 0 0 0 3.6z',
  show: 'M1.5 8S4 3.5 8 3.5 14.5 8 14.5 8 12 12.5 8 12.5 1.5 8 1.5 8zM8 9.8a1.8 1.8 0 1 0 0-3.6 1.8 1.8 0 0 0 0 3.6z',
  info: 'M8 14a6 6 0 1 0 0-12 6 6 0 0 0 0 12zM8 7.2v3.6m0-5.7v.01',
  keyboard: 'M1.5 4h13v8h-13zM4 6.5h.01M6.7 6.5h.01M9.3 6.5h.01M12 6.5h.01M5 9.5h6',
  search: 'M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9zm3.2-1.3L14 14',
  swap: 'M3 5.5h9M9.5 3 12 5.5 9.5 8M13 10.5H4M6.5 8 4 10.5 6.5 13',
  warning: 'M8 2.2 14.5 13.5h-13zM8 6.3v3.4m0 1.9v.01',
} satisfies Record<string, string>;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} fill="none" stroke="currentColor" stroke-width="1.5" stroke-linecap="round" stroke-linejoin="round" />
    </svg>
  );
}
