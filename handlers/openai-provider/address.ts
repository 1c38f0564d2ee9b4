/** Where requests go, and how they prove whose they are. */
export interface ProviderAddress {
  /** Without a slash at its end: `https://api.openai.com/v1`. */
  baseUrl: string
  /** What stands behind every path; with its question mark. */
  query: string
  /** Undefined: nothing is sent. */
  key: string | undefined
  /** Header of the key: `Authorization: Bearer` or Azure's own. */
  keyHeader: 'authorization' | 'api-key'
}
