import GattherdConfig
import GattherdGateway

/// Parses one file called `gattherd.yaml`, in an environment with the given values.
func parse(_ text: String, _ variables: [String: String] = [:]) throws(ConfigErrors) -> Configuration {
    try parse([ConfigSource(name: "gattherd.yaml", text: text)], variables)
}

func parse(_ sources: [ConfigSource], _ variables: [String: String] = [:]) throws(ConfigErrors) -> Configuration {
    try Configuration.parse(
        sources,
        in: ConfigEnvironment(variables: variables, hostName: "Lab-1.example.org"),
        outputs: OutputRegistry.definitions
    )
}

/// The errors of a configuration text; empty if it is valid.
func errors(in text: String, _ variables: [String: String] = [:]) -> [ConfigError] {
    errors(in: [ConfigSource(name: "gattherd.yaml", text: text)], variables)
}

func errors(in sources: [ConfigSource], _ variables: [String: String] = [:]) -> [ConfigError] {
    do throws(ConfigErrors) {
        _ = try parse(sources, variables)
        return []
    } catch {
        return error.errors
    }
}

/// An error as `line:column+width kind`.
func summary(_ error: ConfigError) -> String {
    guard let place = error.place else { return error.problem.kind }
    return "\(place.line):\(place.column)+\(place.width) \(error.problem.kind)"
}
