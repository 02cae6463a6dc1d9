// The name of a header or a trailer (RFC 9110 section 5.6.2), and a value: no control character but a tab (section 5.5).

export const NAME = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
export const VALUE = '[\\t\\x20-\\x7e\\x80-\\xff]*';
