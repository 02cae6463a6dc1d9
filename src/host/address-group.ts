// Groups addresses for limits: a client with IPv6 has a whole network of them, so the first 64 bits stand for one.

export function addressGroup(address: string): string {
  if (!address.includes(':') || address.startsWith('::ffff:')) return address;
  const [head = '', tail] = address.split('::');
  const groups = head.split(':');
  const missing = tail === undefined ? 0 : 8 - groups.length - tail.split(':').length;
  return [...groups, ...Array.from({ length: Math.max(0, missing) }, () => '0'), ...(tail?.split(':') ?? [])]
    .slice(0, 4)
    .join(':');
}
