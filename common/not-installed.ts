/** What to do about packages that a handler imports. */
export function notInstalled(names: readonly string[]): string {
  const [what, is, them] = names.length === 1 ? ['package', 'is', 'it'] : ['packages', 'are', 'them']
  return `The ${what} ${names.join(' and ')} ${is} not installed. Install ${them} where torchserve-ts is installed: npm install ${names.join(' ')}`
}
