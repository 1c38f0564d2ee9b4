/**
 * The runtime's grammars for JSON without the line ends and indentation that they allow: small models go on with them for ever. And
 * without the line ends after the JSON: where nothing may follow, the model ends.
 */
export function compactGrammar(grammar: string): string {
  return grammar
    .replace(/ "\\n\\n\\n\\n" \[\\n\]\*/, '')
    .replace(/^(whitespace-\S+ ::=).*$/gm, '$1 [ ]?')
    .replace(/^(comma-whitespace-\S+ ::=).*$/gm, '$1 "," [ ]?')
    .replace(/^ws ::= .*$/m, 'ws ::= | " "')
}
