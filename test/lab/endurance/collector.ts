// Loaded before a server: it collects its garbage when it is sent SIGUSR2, so that what it holds can be read without what it let go.
import { collectGarbage } from '../../../src/host/collect-garbage.ts';

process.on('SIGUSR2', collectGarbage);
