/** The thread that reads and writes large JSON bodies; see conversions.ts. */
import { serveConversions } from '../../edge/serve-conversions.ts'
import { conversions } from './conversions.ts'

serveConversions(conversions)
