/** The store of commands without --database. Only its folder is created if it does not exist. */
export const DEFAULT_SQLITE_PATH = './data/plant-store.db';
