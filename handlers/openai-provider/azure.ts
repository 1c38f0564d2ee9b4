import type { ProviderAddress } from './address.ts'
import { baseUrl, type Fields, key, text } from './fields.ts'

/**
 * OpenAI's models at Azure: the path contains a deployment, the query the API version. `azure` sends a key,
 * `azure_ad` an Entra ID token. See Azure OpenAI's REST API reference.
 * @throws Error that names the key
 */
export function azureAddress(
  config: Fields,
  type: 'azure' | 'azure_ad',
  env: NodeJS.ProcessEnv,
): ProviderAddress {
  const endpoint = baseUrl(config, 'azure_endpoint') ?? missing('azure_endpoint')
  const deployment =
    text(config, 'azure_deployment') ?? text(config, 'model_id') ?? missing('azure_deployment')
  const version = text(config, 'api_version') ?? env['OPENAI_API_VERSION'] ?? missing('api_version')
  return {
    baseUrl: `${endpoint}/openai/deployments/${encodeURIComponent(deployment)}`,
    query: `?api-version=${encodeURIComponent(version)}`,
    ...(type === 'azure'
      ? { key: key(config, 'AZURE_OPENAI_API_KEY', env), keyHeader: 'api-key' }
      : {
          key: text(config, 'azure_ad_token') ?? key(config, 'AZURE_OPENAI_AD_TOKEN', env),
          keyHeader: 'authorization',
        }),
  }
}

function missing(name: string): never {
  throw new Error(`${name} is required with Azure`)
}
