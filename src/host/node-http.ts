// node:http for files that need more of it than its types. An `import` of that module asks for all that it exports,
// WebSocket among them, and with that loads the whole of fetch: 14 MB in every process. Asked for like this it loads what
// is used. test/architecture.test.ts holds that no other file of src/ imports a value of it.

export const http = process.getBuiltinModule('node:http');
