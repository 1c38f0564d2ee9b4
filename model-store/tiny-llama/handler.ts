/** The bundled model is served by the GGUF handler that ships with the server. */
export { default } from '../../handlers/gguf/handler.ts'
