/**
 * A package that need not be installed; `undefined` where it is not. One that is there but cannot be loaded is a fault to be
 * told, not a reason to do without.
 */
export async function optional<Module>(name: string, load: () => Promise<Module>): Promise<Module | undefined> {
  try {
    return await load();
  } catch (cause) {
    const missing = cause instanceof Error && "code" in cause && cause.code === "ERR_MODULE_NOT_FOUND";
    if (missing && cause.message.includes(name)) return undefined;
    throw cause;
  }
}
