import GattherdYAML

extension Configuration {
    /// Reads the texts of a configuration.
    ///
    /// Lists of devices and of rules are joined over the files; any other key is set in one of them. Relative paths
    /// are taken from the folder of the first file. Where `history.path` is not written, `gattherd.db` lies in
    /// `$STATE_DIRECTORY`, which may name several folders, separated by colons; else in `/var/lib/gattherd` when the
    /// first file is below `/etc`; else beside the first file.
    ///
    /// - Parameters:
    ///   - sources: The main file, then the others in the order of their names.
    ///   - surroundings: The environment.
    /// - Returns: The configuration with defaults filled in.
    /// - Throws: ``ConfigErrors``, with everything that is wrong.
    public static func parse(
        _ sources: [ConfigSource],
        in surroundings: ConfigEnvironment
    ) throws(ConfigErrors) -> Configuration {
        let (configuration, errors) = parseLeniently(sources, in: surroundings)
        guard errors.isEmpty else { throw ConfigErrors(errors) }
        return configuration
    }

    /// Reads the texts of a configuration as far as they are right.
    ///
    /// - Parameters:
    ///   - sources: The main file, then the others in the order of their names.
    ///   - surroundings: The environment.
    /// - Returns: The configuration, with a default in the place of everything that is wrong, and all that is wrong.
    public static func parseLeniently(
        _ sources: [ConfigSource],
        in surroundings: ConfigEnvironment
    ) -> (configuration: Configuration, errors: [ConfigError]) {
        let findings = ConfigFindings(files: sources.map(\.name))
        let parts = sources.flatMap { roots(of: ConfigFile($0), findings) }
        let reader = SectionReader(
            parts,
            title: "the configuration",
            place: nil,
            findings: findings,
            substitution: Substitution(variables: surroundings.variables)
        )
        let paths = PathRule(folder: PathRule.folder(of: sources.first?.name ?? ""))
        let configuration = ConfigurationReader(surroundings: surroundings, paths: paths).configuration(reader)
        return (configuration, findings.sorted)
    }

    /// The file's mapping, or, after a syntax error, the mapping of each section that is valid by itself.
    private static func roots(of file: ConfigFile, _ findings: ConfigFindings) -> [FileNode] {
        do throws(YAMLError) {
            return try YAML.parse(file.octets).map { [FileNode(node: $0, file: file)] } ?? []
        } catch {
            let (line, column) = (error.position.line, error.position.column)
            findings.report(.syntax(error.problem), at: ConfigPlace(file, line: line, column: column, width: 1))
            return file.sections.compactMap { section in
                let node = (try? YAML.parse(section)) ?? nil
                return node?.members == nil ? nil : node.map { FileNode(node: $0, file: file) }
            }
        }
    }
}

/// How paths in a configuration are meant.
struct PathRule {
    /// With a slash at its end, or empty.
    let folder: String

    static func folder(of file: String) -> String {
        guard let slash = file.lastIndex(of: "/") else { return "" }
        return String(file[...slash])
    }

    func resolve(_ path: String) -> String { path.hasPrefix("/") ? path : folder + path }

    func resolve(_ path: Located<String>) -> Located<String> { Located(resolve(path.value), at: path.place) }
}
