import CGattherdProfile
import Glibc

/// Loads shared libraries of native profiles.
enum NativeImage {
    private static let rebuild = "Build it again with this version's ProfileKit or gattherd_profile.h"

    /// Loads the library at `path`, which has `size` bytes, and checks its version and its table.
    ///
    /// The library is never unloaded: the Swift runtime keeps its conformance records, and a later look-up would
    /// crash. `RTLD_NODELETE` pins it; loading it again returns the same image.
    static func open(_ path: String, size: UInt64) throws(ProfileRefusal) -> NativeTable {
        try checkWhole(path, size)
        guard let image = unsafe dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) else {
            throw ProfileRefusal(
                path: path,
                reason: "it cannot be loaded as a shared library (\(lastError(without: path)))",
                remedy: "Build it for this machine, or move it out of the folder"
            )
        }
        guard let symbol = unsafe dlsym(image, GATTHERD_PROFILE_SYMBOL) else {
            throw ProfileRefusal(
                path: path,
                reason: "it does not export \(GATTHERD_PROFILE_SYMBOL)",
                remedy: "Move it out of the folder if it is not a profile. \(rebuild) if it is one"
            )
        }
        let entry = unsafe unsafeBitCast(symbol, to: gattherd_profile_entry.self)
        do throws(TableFault) {
            return try unsafe NativeTable(entry(GATTHERD_PROFILE_MINOR))
        } catch {
            throw ProfileRefusal(path: path, reason: error.reason, remedy: rebuild)
        }
    }

    private static func checkWhole(_ path: String, _ size: UInt64) throws(ProfileRefusal) {
        let end: UInt64
        do throws(FileFault) {
            end = try LibraryExtent(of: path, size: size).end
        } catch {
            throw ProfileRefusal(path: path, reason: "it cannot be read: \(error)", remedy: error.remedy(for: path))
        }
        guard end > size else { return }
        throw ProfileRefusal(
            path: path,
            reason: "it is incomplete: it has \(size) of \(end) bytes",
            remedy: "Copy it again, with install"
        )
    }

    /// Returns the loader's message without the path, which the error line contains already.
    private static func lastError(without path: String) -> String {
        guard let message = unsafe dlerror() else { return "no reason given" }
        let text = unsafe String(cString: message)
        return text.hasPrefix(path + ": ") ? String(text.dropFirst(path.count + 2)) : text
    }
}
