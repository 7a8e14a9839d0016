import FoundationEssentials
import GattherdProcess
import Glibc

/// Shared libraries for tests: compiled from source, or products of this package.
public enum SharedLibrary {
    /// The compiler failed.
    public struct BuildFailure: Error, CustomStringConvertible {
        public let description: String
    }

    /// Compiles C source to a shared library, with the header of the native profile contract.
    ///
    /// - Parameters:
    ///   - source: The C source.
    ///   - name: The library's file name.
    ///   - folder: The folder of the library.
    ///   - headers: A folder with additional headers.
    /// - Returns: The library's path.
    /// - Throws: ``BuildFailure``, or an error if the compiler cannot be started.
    public static func build(
        _ source: String,
        to name: String,
        in folder: TemporaryFolder,
        headers: String? = nil
    ) async throws -> String {
        let input = try folder.write(source, to: name + ".c")
        let output = folder.file(name)
        let include = root + "/Sources/C/CGattherdProfile/include"
        let compiler = try ChildProcess(
            "cc",
            ["-std=gnu11", "-Wall", "-Werror", "-shared", "-fPIC", "-I", include, "-I", headers ?? include]
                + ["-o", output, input]
        )
        guard await compiler.wait() == .exited(0) else { throw BuildFailure(description: "cc refuses \(input)") }
        return output
    }

    /// Compiles Swift files to a shared library, with the ProfileKit of this build.
    ///
    /// - Returns: The library's path.
    public static func buildSwift(
        _ inputs: [String],
        to name: String,
        in folder: TemporaryFolder
    ) async throws -> String {
        let build = Programs.folder.path
        let output = folder.file(name)
        // Objects of removed files stay in the build folder: only those with a source belong to the module.
        let objects = try ["Profiles/ProfileKit", "Core/GattherdGATT"].flatMap { module in
            let name = module.split(separator: "/").last ?? ""
            return try FileManager.default.contentsOfDirectory(atPath: "\(root)/Sources/\(module)")
                .filter { $0.hasSuffix(".swift") }.map { "\(build)/\(name).build/\($0).o" }
        }
        let compiler = try ChildProcess(
            "swiftc",
            ["-swift-version", "6", "-parse-as-library", "-emit-library", "-module-name", "Frozen", "-Onone"]
                + [
                    "-I", "\(build)/Modules", "-Xcc",
                    "-fmodule-map-file=\(build)/CGattherdProfile.build/module.modulemap",
                ]
                + ["-o", output] + inputs + objects
        )
        guard await compiler.wait() == .exited(0) else {
            throw BuildFailure(description: "swiftc refuses \(inputs.joined(separator: ", "))")
        }
        return output
    }

    /// The path of a library product of this package, for example `HeartRate`, beside the program that runs the tests.
    public static func product(_ name: String) throws -> String {
        let program = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let folder = program.split(separator: "/").dropLast().joined(separator: "/")
        return "/\(folder)/lib\(name).so"
    }

    /// The package's folder.
    public static var root: String { Checkout.root.path }
}
