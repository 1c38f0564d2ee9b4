/** Whether a name matches a pattern in which `*` stands for any text. Takes linear time. */
export function matchesGlob(pattern: string, name: string): boolean {
  const [first, ...rest] = pattern.split('*')
  const last = rest.pop()
  if (last === undefined) return pattern === name
  if (!name.startsWith(first!)) return false
  let from = first!.length
  for (const part of rest) {
    const found = name.indexOf(part, from)
    if (found === -1) return false
    from = found + part.length
  }
  return name.length - last.length >= from && name.endsWith(last)
}
