const BEGIN = 'The package '

/** What to do about packages that a handler imports. */
export function notInstalled(names: readonly string[]): string {
  const [what, is, them] = names.length === 1 ? [BEGIN, 'is', 'it'] : ['The packages ', 'are', 'them']
  return `${what}${names.join(' and ')} ${is} not installed. Install ${them} where torchserve-ts is installed: npm install ${names.join(' ')}`
}

/** Whether a message is that of {@link notInstalled} for one package. */
export function tellsNotInstalled(message: string): boolean {
  return message.startsWith(BEGIN) && message.includes(' is not installed. ')
}
