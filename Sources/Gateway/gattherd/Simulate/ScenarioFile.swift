import FoundationEssentials
import GattherdSimulator
import GattherdSync
import Glibc

/// A scenario file.
struct ScenarioFile {
    private static let standardName = "lab"
    private static let suffix = ".yaml"

    let path: String
    let scenario: Scenario

    /// - Parameter name: A file, or the name of a scenario that comes with gattherd; `nil` for its standard scenario.
    /// - Throws: ``CommandFailure`` if it cannot be read, or is wrong.
    init(_ name: String?) throws(CommandFailure) {
        path = try Self.path(of: name)
        guard let data = FileManager.default.contents(atPath: path) else {
            let reason = SystemError.current.description
            let names = Self.installedNames
            let others = names.isEmpty ? "" : "; gattherd comes with \(names.joined(separator: ", "))"
            throw CommandFailure(.noInput, "gattherd simulate: cannot read \(path): \(reason)\(others)")
        }
        do throws(ScenarioError) {
            scenario = try Scenario(String(decoding: data, as: UTF8.self), file: path)
        } catch {
            throw CommandFailure(.data, "gattherd simulate: the scenario is wrong\n\(error)")
        }
        guard !scenario.peripherals.isEmpty else {
            throw CommandFailure(.data, "gattherd simulate: \(path): there are no peripherals in it")
        }
    }

    /// Returns the path of a scenario; a file takes precedence over an installed scenario.
    private static func path(of name: String?) throws(CommandFailure) -> String {
        if let name, FileManager.default.fileExists(atPath: name) { return name }
        if let folder, installedNames.contains(name ?? standardName) {
            return "\(folder)/\(name ?? standardName)\(suffix)"
        }
        if let name { return name }
        throw CommandFailure(
            .usage,
            "gattherd simulate: no \(standardName)\(suffix) was installed with gattherd; name a SCENARIO"
        )
    }

    /// The folder of the scenarios that come with gattherd, of a checkout or installed.
    private static var folder: String? {
        let candidates = ["../../../config/scenarios", "../share/gattherd/scenarios"].map {
            URL(filePath: OwnProgram.folder + "/" + $0).standardized.path
        }
        return candidates.first { FileManager.default.fileExists(atPath: $0) }
    }

    /// The names of the scenarios that come with gattherd, sorted.
    private static var installedNames: [String] {
        let files = folder.flatMap { try? FileManager.default.contentsOfDirectory(atPath: $0) } ?? []
        return files.filter { $0.hasSuffix(suffix) }.map { String($0.dropLast(suffix.count)) }.sorted()
    }
}

/// The paths of this program and of the programs built with it.
enum OwnProgram {
    /// The executable, symbolic links resolved.
    static let path =
        (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? CommandLine.arguments[0]

    static var folder: String { String(path.prefix(upTo: path.lastIndex(of: "/") ?? path.startIndex)) }

    /// The command to type in the current folder.
    static var words: String { CommandLine.arguments[0] }

    /// Returns the path of the program `name` in the same folder.
    static func sibling(_ name: String) -> String { folder + "/" + name }
}
