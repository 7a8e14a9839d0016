/// The version of this package.
package enum GattherdVersion {
    package static let current = "0.1.0"
}
