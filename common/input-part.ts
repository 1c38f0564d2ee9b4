/** One named value of a request, as the client sent it. */
export interface InputPart {
  name: string
  /** Media type without parameters; absent when the client gave none. */
  contentType?: string
  data: Uint8Array
}
