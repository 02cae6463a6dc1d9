# One protected API in Rails, under puma, with the middleware that an application has by default.
require 'rails'
require 'action_controller/railtie'
require 'puma'
require 'puma/server'

HITS = File.open(ENV['HITS'], 'a').tap { |file| file.sync = true }

class Api < Rails::Application
  config.root = Dir.pwd
  config.eager_load = false
  config.consider_all_requests_local = false
  config.secret_key_base = 'x' * 64
  config.logger = Logger.new(nil)
  config.hosts.clear
end

class ApiController < ActionController::Base
  def paid
    HITS.write('x')
    render plain: 'paid for'
  end

  def free
    render plain: 'free'
  end
end

Rails.application.initialize!
Rails.application.routes.draw do
  get '/v1/reports/open', to: 'api#free'
  get '/v1/files/public', to: 'api#free'
  get '/v1/export', to: 'api#paid'
  get '/v1/reports/:id', to: 'api#paid'
  get '/v1/files/*rest', to: 'api#paid'
  post '/v1/teams/:team/jobs/:job', to: 'api#paid'
  get '/v1/Kiss/Data', to: 'api#paid'
  get '/v1/my%20report', to: 'api#paid'
  match '/free/*rest', to: 'api#free', via: :all
end

server = Puma::Server.new(Rails.application, Puma::Events.strings, max_threads: 4)
server.add_tcp_listener('127.0.0.1', ENV['PORT'].to_i)
server.run.join
