/** The functions of `src/engines/open-store.ts`, with the URL of a database as for `--database`. */
import { databaseAddressOf } from '../../src/engines/database-url.ts';
import * as stores from '../../src/engines/open-store.ts';

type ServedSettings = Omit<stores.StoreSettings, 'database'> & { database: string };

export const openServedStore = async (settings: ServedSettings) =>
  stores.openServedStore({ ...settings, database: databaseAddressOf(settings.database) });

export const openCommandStore = async (url: string) => stores.openCommandStore(databaseAddressOf(url));

export const openReader = async (url: string) => stores.openReader(databaseAddressOf(url));

export const openSearch = async (url: string) => stores.openSearch(databaseAddressOf(url));

export const openCopyTarget = async (url: string) => stores.openCopyTarget(databaseAddressOf(url));
