// The icons of the desk: strokes of 1.5 on a grid of 20, in the colour of the text around them. They say nothing by themselves;
// words stand beside them or in the label of their button.

const PATHS = {
  overview: 'M3 17V9m4.7 8V4m4.6 13v-6M17 17V7',
  routes:
    'M4 5.5a1.5 1.5 0 1 0 3 0 1.5 1.5 0 0 0-3 0Zm9 9a1.5 1.5 0 1 0 3 0 1.5 1.5 0 0 0-3 0ZM7 5.5h4.5a3 3 0 0 1 0 6h-3a3 3 0 0 0 0 6',
  try: 'm4 6 4 4-4 4m6 1h6',
  charges: 'M5 3h10v14l-2.5-1.6L10 17l-2.5-1.6L5 17Zm3 4h4m-4 3.5h4',
  plans: 'M3.5 4.5h5v5h-5Zm0 8.5h5m-5 3h5M12 5h4.5M12 8.5h4.5m-4.5 2.5h5v5h-5Z',
  passes: 'M3 6.5h14v2.2a1.5 1.5 0 0 0 0 2.6v2.2H3v-2.2a1.5 1.5 0 0 0 0-2.6Zm8.5 0v1.2m0 1.7v1.2m0 1.7v1.2',
  keys: 'M12.5 3.5a4 4 0 1 1-3.4 6.1L3.5 15v2H6v-1.7h1.7v-1.7l1.6-1.6m3.7-4.7v.01',
  receivers:
    'M3.5 6.5A1.5 1.5 0 0 1 5 5h9v2.5M3.5 6.5v8A1.5 1.5 0 0 0 5 16h11.5V7.5H5a1.5 1.5 0 0 1-1.5-1M13.5 11.7v.01',
  audit: 'M10 5.5V10l3 2M3.8 8A6.5 6.5 0 1 1 3.5 10M3.5 4v4h4',
  api: 'M7.5 5.5 3 10l4.5 4.5m5-9L17 10l-4.5 4.5',
  search: 'M8.8 14.1a5.3 5.3 0 1 0 0-10.6 5.3 5.3 0 0 0 0 10.6Zm3.9-1.4 3.8 3.8',
  close: 'm5 5 10 10M15 5 5 15',
  copy: 'M7.5 7.5h8v9h-8Zm5-4h-8v9',
  check: 'm4 10.5 4 4L16 6',
  plus: 'M10 4v12M4 10h12',
  up: 'M10 16V4.5m-4.5 4.5L10 4.5 14.5 9',
  down: 'M10 4v11.5m4.5-4.5L10 15.5 5.5 11',
  right: 'm7.5 5 5 5-5 5',
  left: 'm12.5 5-5 5 5 5',
  out: 'M8 4H4v12h12v-4m-5-8h5v5m0-5-7 7',
  warn: 'M10 7.5v3.3m0 2.7v.01M8.7 3.8 2.8 14.2A1.5 1.5 0 0 0 4.1 16.5h11.8a1.5 1.5 0 0 0 1.3-2.3L11.3 3.8a1.5 1.5 0 0 0-2.6 0Z',
  more: 'M4.5 10h.01M10 10h.01M15.5 10h.01',
  sun: 'M10 13.2a3.2 3.2 0 1 0 0-6.4 3.2 3.2 0 0 0 0 6.4ZM10 2.5v1.6m0 11.8v1.6M2.5 10h1.6m11.8 0h1.6M4.7 4.7l1.1 1.1m8.4 8.4 1.1 1.1m0-10.6-1.1 1.1m-8.4 8.4-1.1 1.1',
  moon: 'M16.5 11.7A6.8 6.8 0 0 1 8.3 3.5a6.8 6.8 0 1 0 8.2 8.2Z',
  system: 'M3 4.5h14v9H3Zm4.5 12h5M10 13.5v3',
  refresh: 'M16 8.5A6.3 6.3 0 0 0 4.4 7M4 11.5A6.3 6.3 0 0 0 15.6 13M4 3.5V7h3.5M16 16.5V13h-3.5',
  download: 'M10 3.5v9m-4-3.8 4 3.8 4-3.8M4 16.5h12',
  keyboard: 'M2.5 5.5h15v9h-15Zm3 3h.01m3 0h.01m3 0h.01m3 0h.01M6.5 12h7',
  edit: 'm12.2 4.8 3 3M4 16l.8-3.6 8-8a1.4 1.4 0 0 1 2 0l.8.8a1.4 1.4 0 0 1 0 2l-8 8Z',
  filter: 'M3 5.5h14M5.5 10h9M8 14.5h4',
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 18 }: { readonly name: IconName; readonly size?: number }) {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 20 20" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}
