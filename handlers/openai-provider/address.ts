/** URL and credentials of a provider. */
export interface ProviderAddress {
  /** Without a trailing slash: `https://api.openai.com/v1`. */
  baseUrl: string
  /** Query string for every path, with its question mark. */
  query: string
  /** Undefined: no key is sent. */
  key: string | undefined
  /** Header for the key: `Authorization: Bearer`, or Azure's own. */
  keyHeader: 'authorization' | 'api-key'
}
