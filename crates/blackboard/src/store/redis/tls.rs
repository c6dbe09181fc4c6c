//! TLS: rustls with ring, which starts in milliseconds (docs/decisions/0020).

use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::socket::TimedStream;

pub(super) type Stream = StreamOwned<ClientConnection, TimedStream>;

/// Starts TLS on a stream. The first bytes are exchanged when the first request is sent.
pub(super) fn connect(stream: TimedStream, host: &str, certificates: Option<&Path>) -> io::Result<Stream> {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots(certificates)?)
        .with_no_client_auth();
    let name = ServerName::try_from(host.to_owned())
        .map_err(|error| io::Error::new(ErrorKind::InvalidInput, error))?;
    let connection = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
    Ok(StreamOwned::new(connection, stream))
}

/// The certificates to trust.
fn roots(file: Option<&Path>) -> io::Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    match file {
        Some(file) => {
            let failed = |error| {
                let reason = format!("the certificates in {} cannot be read: {error}", file.display());
                io::Error::new(ErrorKind::InvalidInput, reason)
            };
            for certificate in CertificateDer::pem_file_iter(file).map_err(failed)? {
                roots.add(certificate.map_err(failed)?).map_err(io::Error::other)?;
            }
        }
        None => drop(roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs)),
    }
    if roots.is_empty() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "there are no certificates to trust"));
    }
    Ok(roots)
}
