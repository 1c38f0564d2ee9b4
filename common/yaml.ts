/** For `await import`: from a bundle, only import statements get the names of a CommonJS package. */
export { Lexer, parse, parseDocument, visit } from 'yaml'
