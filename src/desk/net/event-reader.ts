// Server-Sent Events out of the bytes of a response. EventSource sends no header of ours, so streams are read from a fetch.
// Source: the HTML standard, section 9.2.6.

export type ServerEvent = { readonly id: string; readonly type: string; readonly data: string };

/** Takes text as it comes and hands whole events on. */
export function createEventParser(take: (event: ServerEvent) => void): (text: string) => void {
  let rest = '';
  let id = '';
  let type = '';
  let data: string[] = [];
  const line = (text: string): void => {
    if (text === '') {
      if (data.length > 0) take({ id, type: type === '' ? 'message' : type, data: data.join('\n') });
      [type, data] = ['', []];
      return;
    }
    const colon = text.indexOf(':');
    const field = colon < 0 ? text : text.slice(0, colon);
    const value = colon < 0 ? '' : text.slice(colon + 1).replace(/^ /, '');
    if (field === 'data') data.push(value);
    else if (field === 'event') type = value;
    else if (field === 'id') id = value;
  };
  return (text) => {
    const lines = (rest + text).split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop() ?? '';
    for (const each of lines) line(each);
  };
}
