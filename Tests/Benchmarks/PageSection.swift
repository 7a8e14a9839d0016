import FoundationEssentials
import Glibc

/// A part of a page between comments, which a benchmark writes.
///
/// `Load/report.py` writes the other sections of the page in the same way.
struct PageSection {
    /// The page has no such section.
    struct Missing: Error, CustomStringConvertible {
        let description: String
    }

    private let path: String
    private let name: String

    init(_ name: String, of path: String) {
        self.name = name
        self.path = path
    }

    /// Replaces the section by a table and the machine that it was measured on.
    func write(_ table: RatioTable, corner: String) throws {
        let text = try String(contentsOfFile: path, encoding: .utf8)
        let lines = ["Measured on \(Self.machine()).", ""] + table.markdown(corner: corner)
        try replaced(in: text, with: lines).write(toFile: path, atomically: true, encoding: .utf8)
    }

    private func replaced(in text: String, with lines: [String]) throws -> String {
        var page = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        guard let start = page.firstIndex(where: { $0.hasPrefix("<!-- \(name): ") }),
            let end = page[start...].firstIndex(of: "<!-- end of \(name) -->")
        else { throw Missing(description: "\(path) has no section '\(name)'") }
        page.replaceSubrange(start + 1..<end, with: lines)
        return page.joined(separator: "\n")
    }

    /// The number of cores and the processor; the host's name stays out of the page.
    private static func machine() -> String {
        let cores = sysconf(Int32(_SC_NPROCESSORS_ONLN))
        let lines = ((try? String(contentsOfFile: "/proc/cpuinfo", encoding: .utf8)) ?? "").split(separator: "\n")
        let line = lines.first { $0.hasPrefix("model name") || $0.hasPrefix("Model") }
        let model = line?.split(separator: ":", maxSplits: 1).last.map { String($0.drop { $0 == " " }) }
        return "\(cores) core\(cores == 1 ? "" : "s"), \(model ?? "unknown processor")"
    }
}
