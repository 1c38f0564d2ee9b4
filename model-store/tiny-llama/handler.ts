/** The GGUF handler that ships with the server. */
export { default } from 'torchserve-ts/gguf'
