// Something that is loaded when it is first needed, such as a module that few processes ever use. All who ask while it is
// being loaded wait for the same load; after one that failed, the next who asks begins another.

export function loadOnce<T>(load: () => Promise<T>): () => Promise<T> {
  let loading: Promise<T> | undefined;
  return () => {
    if (loading === undefined) {
      const begun = (loading = load());
      begun.catch(() => loading === begun && (loading = undefined));
    }
    return loading;
  };
}
