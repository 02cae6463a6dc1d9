// A sentence of the registry: what stands in backticks in it is a name, and is set like one.

export function Prose({ text }: { readonly text: string }) {
  return <>{text.split('`').map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : part))}</>;
}
