/**
 * Removes line ends and indentation from the runtime's JSON grammars: small models would generate them
 * endlessly. Also removes line ends after the JSON, so that the model must stop there.
 */
export function compactGrammar(grammar: string): string {
  return grammar
    .replace(/ "\\n\\n\\n\\n" \[\\n\]\*/, '')
    .replace(/^(whitespace-\S+ ::=).*$/gm, '$1 [ ]?')
    .replace(/^(comma-whitespace-\S+ ::=).*$/gm, '$1 "," [ ]?')
    .replace(/^ws ::= .*$/m, 'ws ::= | " "')
}
