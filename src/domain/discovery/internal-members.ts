// Members of an OpenAPI document that are its owner's alone: all whose name begins with `x-internal`, in any case. They
// are taken out before anything else reads the document, so that nothing that is told later can hold one.

const INTERNAL = /^x-internal/i;

const isInternal = (name: unknown): boolean => typeof name === 'string' && INTERNAL.test(name);

/** A copy of `value`, plain data without circles, with no such member anywhere, and no list that names one. */
export function withoutInternal(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutInternal);
  if (typeof value !== 'object' || value === null) return value;
  // The member is defined, not assigned: one named __proto__ stays a member.
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, member]) =>
      isInternal(name) ? [] : [[name, withoutInternal(withoutNames(name, member))]],
    ),
  );
}

/** A schema's `required` names its members, and an operation's `parameters` are named by one of theirs. */
function withoutNames(name: string, member: unknown): unknown {
  if (!Array.isArray(member)) return member;
  if (name === 'required') return member.filter((each) => !isInternal(each));
  if (name === 'parameters') return member.filter((each) => !isInternal(nameOf(each)));
  return member;
}

function nameOf(value: unknown): unknown {
  return typeof value === 'object' && value !== null && 'name' in value ? value.name : undefined;
}
